#pragma once

#include <memory>

#include "translution/kernels/relative.h"
#include "translution/ops/fused_call.h"

namespace translution {

/// The relative sides with features, where a call is pairwise: lanes, slot by slot.
template <typename T>
class FusedRelative {
 public:
  explicit FusedRelative(const FusedCall& call);

  /// Scores without the scale, zeros without relative queries. `kept` receives the encodings unless
  /// it is empty.
  at::Tensor scores(const at::Tensor& kept) const;
  at::Tensor values(const at::Tensor& weights) const;  ///< [B,Nq,S]; empty without rel_v

  /// Returns the gradient of the weights, zeros without rel_v, and adds those of the value side.
  /// Goes before scores_backward, which completes the gradients of features that are one tensor.
  at::Tensor values_backward(const at::Tensor& weights, const at::Tensor& d_out,
                             TermGradients& grads);
  void scores_backward(const at::Tensor& d_scores, const at::Tensor& kept, TermGradients& grads);

 private:
  struct Features {
    at::Tensor x;     // [parts,N,b,C], or [parts,N,C,b] with the samples last
    at::Tensor rows;  // [parts,N,b,C] beside that, for the gradient of a table
  };
  // What one thread does at a time.
  struct Piece {
    int shard;
    int64_t part;  // of the batch
    int64_t sum;   // the accumulator's part that it adds to
    bool first;    // to add to it
  };
  struct Gradient;

  Features arrange(const at::Tensor& x) const;
  at::Tensor tokens_first(const at::Tensor& x, bool batch_last) const;
  kernels::Side<T> side(const Features& features, const at::Tensor& table, int64_t part) const;
  T* lanes_of(const at::Tensor& lanes, int64_t part) const;
  T* kept_of(const at::Tensor& kept, int64_t part) const;
  at::Tensor new_sums(int64_t tokens, int64_t channels) const;
  T* sum_of(const at::Tensor& sums, const Piece& piece, bool clear) const;
  at::Tensor merge(const at::Tensor& sums) const;
  template <typename Pass>
  [[gnu::always_inline]] void for_pieces(bool writes_tables, const Pass& pass) const;

  const FusedCall& call_;
  const std::shared_ptr<const kernels::SlotPlan> plan_;  // null unless pairwise
  const Features rel_q_, rel_k_, rel_v_;
  const at::Tensor table_q_, table_k_, table_v_;  // [M,C,R]
  at::Tensor joined_;                             // accumulator of the features that are one tensor
};

}  // namespace translution
