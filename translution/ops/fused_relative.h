#pragma once

#include <memory>

#include "translution/kernels/relative_bf16.h"
#include "translution/kernels/relative_bf16_last.h"
#include "translution/ops/fused_call.h"

namespace translution {

/// The element types of a slot pass: Number for scores and sums, Row for feature rows.
template <typename Passes>
struct PassTypes;
template <typename T>
struct PassTypes<kernels::RelativePasses<T>> {
  using Number = T;
  using Row = T;
  using Side = kernels::Side<T>;
};
template <>
struct PassTypes<kernels::Bf16RelativePasses> {
  using Number = float;
  using Row = kernels::Bf16;
  using Side = kernels::Bf16Side;
};

template <>
struct PassTypes<kernels::Bf16LastPasses> {
  using Number = float;
  using Row = kernels::Bf16;
  using Side = kernels::Bf16LastSide;
};

/// The relative sides with features, for pairwise calls. Works on lanes, slot by slot. `Passes`
/// depends on the type of the products and, for bfloat16, on whether the batch dimension is last.
template <typename Passes>
class FusedRelative {
 public:
  using T = typename PassTypes<Passes>::Number;
  using Row = typename PassTypes<Passes>::Row;
  using Side = typename PassTypes<Passes>::Side;

  explicit FusedRelative(const FusedCall& call);

  /// Returns the unscaled scores of all slots, zeros without relative queries. Stores the encodings
  /// in `kept` unless it is empty.
  at::Tensor scores(const at::Tensor& kept) const;
  at::Tensor values(const at::Tensor& weights) const;  ///< [B,Nq,S]; empty without rel_v

  /// Returns the gradient of the weights, zeros without rel_v, and for pairs of slots that another
  /// process has. Sets the gradients of the value side in `grads`. Call it before scores_backward,
  /// which completes the gradient of features.
  at::Tensor values_backward(const at::Tensor& weights, const at::Tensor& d_out,
                             TermGradients& grads);
  void scores_backward(const at::Tensor& d_scores, const at::Tensor& kept, TermGradients& grads);

 private:
  static constexpr bool kBf16 = std::is_same_v<Row, kernels::Bf16>;
  static constexpr bool kLastBf16 = std::is_same_v<Passes, kernels::Bf16LastPasses>;

  // Token-major features. The batch is split into `parts` of b samples. x is [parts,N,b,C]. With
  // the batch last, x is [parts,N,C,b], and `rows` [parts,N,b,C] is set for the gradient of a
  // table. Bfloat16 features with the batch last are packed.
  struct Features {
    at::Tensor x, rows;
    int64_t tokens = 0, channels = 0;
  };
  struct Table {
    at::Tensor matrices;  // [M,C,R]
    // bf16: packed copies, if any; with the batch last, zero-padded rows.
    at::Tensor straight, transposed;
  };
  // One unit of work: a shard of the slots and a part of the batch.
  struct Piece {
    int shard;
    int64_t part;
    int64_t sum;  // index of the accumulator that it adds to
    bool first;   // is the first to add to that accumulator
  };
  struct Gradient;

  Features arrange(const at::Tensor& x) const;
  at::Tensor tokens_first(const at::Tensor& x, bool batch_last) const;
  Table prepare(const at::Tensor& matrices) const;
  Side side(const Features& features, const Table& table, int64_t part) const;
  T* lanes_of(const at::Tensor& lanes, int64_t part) const;
  Row* kept_of(const at::Tensor& kept, int64_t part) const;
  at::Tensor new_sums(int64_t tokens, int64_t channels) const;
  T* sum_of(const at::Tensor& sums, const Piece& piece, bool clear) const;
  at::Tensor merge(const at::Tensor& sums) const;
  template <typename Pass>
  [[gnu::always_inline]] void for_pieces(bool writes_tables, const Pass& pass) const;

  const FusedCall& call_;
  const std::shared_ptr<const kernels::SlotPlan> plan_;  // null unless pairwise
  const Features rel_q_, rel_k_, rel_v_;
  const Table table_q_, table_k_, table_v_;
  at::Tensor joined_;  // accumulators of features that several sides share
};

}  // namespace translution
