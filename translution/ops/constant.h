#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace translution {

/// The numbers as an int64 tensor on the CPU. Unlike at::tensor, this also works while a graph is
/// traced, where it becomes a constant of the graph: the same steps as in Python's torch.tensor.
inline at::Tensor constant_tensor(const std::vector<int64_t>& numbers) {
  at::Tensor real;
  {
    using c10::DispatchKey;
    const c10::impl::ExcludeDispatchKeyGuard no_modes(c10::DispatchKeySet(
        {DispatchKey::Python, DispatchKey::PythonTLSSnapshot, DispatchKey::Functionalize,
         DispatchKey::FuncTorchDynamicLayerFrontMode, DispatchKey::FuncTorchDynamicLayerBackMode}));
    const at::AutoDispatchBelowADInplaceOrView below;
    real = at::tensor(numbers, at::kLong);
  }
  return at::lift_fresh(real);
}

}  // namespace translution
