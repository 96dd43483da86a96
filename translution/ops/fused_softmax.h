#pragma once

#include "translution/ops/fused_call.h"

namespace translution {

/// Softmax over the keys and its gradient, on maps [B,H,Nq,N] or on lanes, pair by pair, and the
/// tables of numbers per slot that enter it: bias, and position with its gate.
template <typename T>
class FusedSoftmax {
 public:
  explicit FusedSoftmax(const FusedCall& call);

  /// In place. Scores already carry the scale.
  void on_lanes(at::Tensor& scores) const;
  /// The gradient of unscaled scores, in place on dp.
  void on_lanes_backward(const at::Tensor& p, at::Tensor& dp) const;
  /// Of scale * scores + bias, in place.
  void on_maps(at::Tensor& scores) const;
  /// What the values are summed with: the map p [B,H,Nq,N], mixed with the positional attention
  /// where there is a gate.
  at::Tensor gated(const at::Tensor& p) const;
  /// The gradient of unscaled scores, in place on that of gated(p); `grads` receive those of bias,
  /// position and gate that are needed.
  void on_maps_backward(const at::Tensor& p, at::Tensor& d, TermGradients& grads) const;

 private:
  std::vector<T> position_less_own(const at::Tensor& p, const at::Tensor& d) const;
  void gate_gradients(const at::Tensor& p, const at::Tensor& d, TermGradients& grads) const;
  at::Tensor spread(const at::Tensor& table) const;
  at::Tensor sum_by_slot(const at::Tensor& by_pair, const at::Tensor& table) const;

  const FusedCall& call_;
  at::Tensor position_;  // softmax_j(position[slot]) [H,Nq,N]; undefined without a gate
};

}  // namespace translution
