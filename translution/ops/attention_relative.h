#pragma once

#include <memory>

#include "translution/kernels/relative.h"
#include "translution/ops/attention_fused.h"

namespace translution {

/// The relative sides with features, where a call is pairwise: lanes, slot by slot.
template <typename T>
class FusedRelative {
 public:
  explicit FusedRelative(const FusedCall& call);

  /// Scores without the scale, zeros without relative queries. `kept` receives the encodings where
  /// that is worth while and the workspace has room.
  at::Tensor scores(at::Tensor& kept) const;
  at::Tensor values(const at::Tensor& weights) const;  ///< [B,Nq,S]; empty without rel_v

  /// Returns the gradient of the weights, zeros without rel_v, and adds those of the value side.
  /// Goes before scores_backward, which completes the gradients of features that are one tensor.
  at::Tensor values_backward(const at::Tensor& weights, const at::Tensor& d_out,
                             TermGradients& grads);
  void scores_backward(const at::Tensor& d_scores, const at::Tensor& kept, TermGradients& grads);

 private:
  struct Features {
    at::Tensor x;     // [N,B,C], or [N,C,B] with the samples last
    at::Tensor rows;  // [N,B,C] beside that, for the gradient of a table
  };
  struct Gradient;

  Features arrange(const at::Tensor& x) const;
  at::Tensor tokens_first(const at::Tensor& x) const;
  at::Tensor batch_first(const at::Tensor& x) const;
  kernels::Side<T> side(const Features& features, const at::Tensor& table) const;
  at::Tensor new_sums(int64_t tokens, int64_t channels) const;
  template <typename Pass>
  void for_shards(const Pass& pass) const;

  const FusedCall& call_;
  const Features rel_q_, rel_k_, rel_v_;
  const at::Tensor table_q_, table_k_, table_v_;  // [M,C,R]
  std::shared_ptr<const kernels::SlotPlan> plan_;
  at::Tensor joined_;  // accumulator of the features that are one tensor
};

}  // namespace translution
