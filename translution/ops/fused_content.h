#pragma once

#include "translution/ops/fused_call.h"

namespace translution {

/// The terms q, k and v. Works on maps [B,H,Nq,N], one sample and head at a time.
template <typename T>
class FusedContent {
 public:
  explicit FusedContent(const FusedCall& call) : call_(call) {}

  at::Tensor scores() const;                           ///< maps, without the scale
  at::Tensor values(const at::Tensor& weights) const;  ///< [B,Nq,F]; empty without v
  /// Returns the gradient of the weights. Sets `dv` if the gradient of v is needed.
  at::Tensor values_backward(const at::Tensor& weights, const at::Tensor& d_out,
                             at::Tensor& dv) const;
  void scores_backward(const at::Tensor& d_scores, at::Tensor& dq, at::Tensor& dk) const;

  /// lanes = beta * lanes + alpha * maps [B,H,Nq,N]
  void add_maps(const at::Tensor& maps, double alpha, double beta, at::Tensor& lanes) const;
  /// Returns the map as contiguous [B,H,Nq,N]; transposes it if it is stored as lanes.
  at::Tensor to_maps(const at::Tensor& map) const;

 private:
  template <typename Pass>
  void for_items(const Pass& pass) const;
  template <typename Passes, typename Pass>
  void for_items_with(const Pass& pass) const;
  template <typename Work>
  void for_blocks(const Work& work) const;

  const FusedCall& call_;
};

}  // namespace translution
