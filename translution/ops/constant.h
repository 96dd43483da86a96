#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace translution {

/// While it lives, calls make ordinary tensors, also under torch.func and while a graph is traced.
class OrdinaryTensors {
 public:
  OrdinaryTensors()
      : no_modes_(c10::DispatchKeySet(
            {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot,
             c10::DispatchKey::Functionalize, c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
             c10::DispatchKey::FuncTorchDynamicLayerBackMode})) {}

 private:
  const c10::impl::ExcludeDispatchKeyGuard no_modes_;
  const at::AutoDispatchBelowADInplaceOrView below_;
};

/// The numbers as an int64 tensor on the CPU. Unlike at::tensor, this also works while a graph is
/// traced, where it becomes a constant of the graph: the same steps as in Python's torch.tensor.
inline at::Tensor constant_tensor(const std::vector<int64_t>& numbers) {
  at::Tensor real;
  {
    const OrdinaryTensors ordinary;
    real = at::tensor(numbers, at::kLong);
  }
  return at::lift_fresh(real);
}

}  // namespace translution
