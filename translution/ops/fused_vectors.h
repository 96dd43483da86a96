#pragma once

#include "translution/kernels/vectors.h"
#include "translution/ops/fused_call.h"

namespace translution {

/// Adds a vector per slot to the keys (table_k) and to the values (table_v). For the keys, the dot
/// product of rel_q and table_k is added to the scores.
template <typename T>
class FusedVectors {
 public:
  explicit FusedVectors(const FusedCall& call) : call_(call) {}

  /// maps [B,H,Nq,N] += rel_q_i . table_k[slot], unscaled.
  void add_scores(at::Tensor& maps) const;
  at::Tensor values(const at::Tensor& weights) const;  ///< [B,Nq,S]

  /// Adds the gradient of the weights to d_maps. Sets `dtable` if the gradient of table_v is
  /// needed.
  void values_backward(const at::Tensor& weights, const at::Tensor& d_out, at::Tensor& d_maps,
                       at::Tensor& dtable) const;
  void scores_backward(const at::Tensor& d_scores, at::Tensor& dq, at::Tensor& dtable) const;

 private:
  typename kernels::VectorPasses<T>::Shape shape(const at::Tensor& table) const;
  template <typename Pass>
  void for_queries(const at::Tensor& table, const Pass& pass) const;
  at::Tensor sums(const at::Tensor& table, const at::Tensor& maps) const;
  at::Tensor table_gradient(const at::Tensor& table, const at::Tensor& maps,
                            const at::Tensor& x) const;

  const FusedCall& call_;
};

}  // namespace translution
