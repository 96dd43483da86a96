#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "translution/ops/compat.h"

namespace translution {

/// What a backward function receives. At least one gradient is defined.
struct BackwardCall {
  std::vector<at::Tensor> d;      ///< gradients of the outputs; undefined if there is none
  std::vector<at::Tensor> saved;  ///< the saved tensors
  std::vector<bool> needs;        ///< whether the gradient of each input is needed
};

/// Returns one gradient per input; undefined if there is none.
using BackwardFunction = std::function<std::vector<at::Tensor>(const BackwardCall&)>;

/// The autograd implementation of an op, written as LibTorch's own are: a node of the graph that
/// holds saved tensors. Unlike torch::autograd::Function, it also works under torch.func.
///
///   const Differentiable call("gelu", {x});
///   const auto out = call.below([&] { return gelu(x, tanh); });
///   call.finish({out}, {x}, [tanh](const BackwardCall& b) -> Tensors { … });
///   return out;
class Differentiable {
 public:
  /// `inputs` are those that backward has gradients of; they may be undefined.
  Differentiable(const std::string& op, const std::vector<at::Tensor>& inputs);

  /// Returns whether an input needs a gradient.
  bool recorded() const { return node_ != nullptr; }

  /// Calls the op's implementation for the device.
  template <typename Forward>
  auto below(const Forward& forward) const {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return forward();
  }

  /// Connects outputs and inputs in the graph, if an input needs a gradient. `saved` may include
  /// outputs, and undefined tensors.
  void finish(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& saved,
              BackwardFunction backward) const;

 private:
  NodePointer node_;  // null if no input needs a gradient
};

}  // namespace translution
