#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <vector>

#include "translution/ops/compat.h"

namespace translution {

// The plain form of an op is the same function in LibTorch calls that autograd follows. It is what
// runs in forward mode, and what second derivatives are computed from. Such calls may be other ops
// of ours, but must not write to a tensor that autograd has saved, nor read the memory of one.

/// Returns whether a tensor in an argument has a tangent, as in forward mode.
template <typename T>
bool has_tangent(const T&) {
  return false;
}
bool has_tangent(const at::Tensor& x);
bool has_tangent(const OptionalTensor& x);
bool has_tangent(at::TensorList list);
bool has_tangent(const OptionalTensorList& list);

/// The autograd implementation of a forward op, which calls `plain` in forward mode.
template <typename Result, typename... Arguments>
auto with_forward_mode(Result (*autograd)(Arguments...), Result (*plain)(Arguments...)) {
  return [autograd, plain](Arguments... arguments) -> Result {
    const bool forward_mode = plain && (has_tangent(arguments) || ...);
    return (forward_mode ? plain : autograd)(std::forward<Arguments>(arguments)...);
  };
}

/// The gradients of sum(d * function(inputs)) by those inputs that are needed. They can be
/// differentiated again in grad mode. Undefined where `function` does not depend on an input, and
/// for an output whose d is undefined.
std::vector<at::Tensor> plain_gradients(
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& function,
    const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& d,
    const std::vector<bool>& needs);

/// The autograd implementation of a backward op. Its node computes second derivatives from the
/// plain form of the backward op, and only when they are asked for: with create_graph, and always
/// under torch.func, first derivatives are recorded too. Without a plain form it throws.
class BackwardKernel final : public c10::OperatorKernel {
 public:
  explicit BackwardKernel(c10::KernelFunction plain) : plain_(std::move(plain)) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) const;

 private:
  const c10::KernelFunction plain_;
};

}  // namespace translution
