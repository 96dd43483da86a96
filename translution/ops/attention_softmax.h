#pragma once

#include "translution/ops/attention_fused.h"

namespace translution {

/// Softmax over the keys and its gradient, on maps [B,H,Nq,N] or on lanes [Nq,N,B,H], and the
/// tables of numbers per slot that enter it.
template <typename T>
class FusedSoftmax {
 public:
  explicit FusedSoftmax(const FusedCall& call) : call_(call) {}

  /// In place. Scores already carry the scale.
  void on_lanes(at::Tensor& scores) const;
  /// The gradient of unscaled scores, in place on dp.
  void on_lanes_backward(const at::Tensor& p, at::Tensor& dp) const;
  /// Of scale * scores + bias, in place.
  void on_maps(at::Tensor& scores) const;
  /// The gradient of unscaled scores, in place on dp; `dbias` receives that of the bias if wanted.
  void on_maps_backward(const at::Tensor& p, at::Tensor& dp, at::Tensor& dbias) const;

 private:
  at::Tensor spread(const at::Tensor& table) const;
  at::Tensor sum_by_slot(const at::Tensor& by_pair, const at::Tensor& table) const;

  const FusedCall& call_;
};

}  // namespace translution
