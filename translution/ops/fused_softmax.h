#pragma once

#include "translution/ops/fused_call.h"

namespace translution {

/// Softmax over the keys and its gradient, on maps [B,H,Nq,N] or on lanes. Also applies the key
/// padding mask and the tables [M,H] with a number per slot: bias, and position with its gate.
template <typename T>
class FusedSoftmax {
 public:
  explicit FusedSoftmax(const FusedCall& call);

  /// Softmax of scaled scores, in place.
  void on_lanes(at::Tensor& scores) const;
  /// Replaces dp by the gradient of the unscaled scores. With `own_pairs`, dp is zero for pairs of
  /// slots that another process has, and the result is of use for the pairs of this one.
  void on_lanes_backward(const at::Tensor& p, at::Tensor& dp, bool own_pairs) const;
  /// Softmax of scale * scores + bias, in place.
  void on_maps(at::Tensor& scores) const;
  /// The weights of the values before dropout: the map p [B,H,Nq,N], mixed with the positional
  /// attention if there is a gate.
  at::Tensor gated(const at::Tensor& p) const;
  /// Replaces d, the gradient of gated(p), by the gradient of the unscaled scores. Sets the
  /// gradients of bias, position and gate in `grads` if they are needed.
  void on_maps_backward(const at::Tensor& p, at::Tensor& d, TermGradients& grads) const;

 private:
  std::vector<T> gate_dots(const at::Tensor& p, const at::Tensor& d) const;
  void gate_gradients(const at::Tensor& p, const at::Tensor& d, TermGradients& grads) const;
  std::vector<int64_t> padded_lanes() const;
  at::Tensor expand_slots(const at::Tensor& table) const;
  at::Tensor sum_by_slot(const at::Tensor& by_pair, const at::Tensor& table) const;

  const FusedCall& call_;
  at::Tensor mask_;      // key padding [B,N], contiguous; undefined without
  at::Tensor position_;  // softmax_j(position[slot]) [1,H,Nq,N], or [B,H,Nq,N] with a key padding
                         // mask; undefined without a gate
};

}  // namespace translution
