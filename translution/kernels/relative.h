#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "translution/kernels/gemm.h"
#include "translution/kernels/row_ops.h"
#include "translution/kernels/slot_plan.h"

namespace translution::kernels {

/// One relative side, token by token: x [tokens,B,channels] times table [M,channels,width]. Without
/// a table the encoding is x itself and width = channels.
template <typename T>
struct Side {
  const T* x = nullptr;
  const T* table = nullptr;
  int64_t channels = 0, width = 0;
  const T* rows = nullptr;  ///< x with the samples first, where x has them last
};

/// Where a side's gradients go; null: not needed.
template <typename T>
struct SideGradient {
  T* dx = nullptr;          ///< the shard's accumulator [tokens,B,channels]
  T* dtable = nullptr;      ///< [M,channels,width]
  char* written = nullptr;  ///< [M]: rows of dtable that hold something; the first adds to none
};

struct Sizes {
  int64_t batch;    ///< samples of a part of the batch, on which a pass works
  int64_t samples;  ///< of the whole batch, whose lanes lie together
  int64_t tokens, heads;
  /// Are the samples the last index of everything: [tokens,channels,B] and [Nq,N,H,B]? So narrow
  /// channels fill whole vectors; each token is then a product of its own.
  bool batch_last;
};

/// Where the scores of a pair begin among all [Nq,N,B,H] or [Nq,N,H,B].
inline int64_t pair_at(const Chunk& chunk, const Chunk::Pair& pair, const Sizes& sizes) {
  return (chunk.queries[pair.query] * sizes.tokens + chunk.keys[pair.key]) * sizes.samples *
         sizes.heads;
}

/// Are these neighbours, in order?
bool are_consecutive(const std::vector<int64_t>& tokens);

/// The passes over the slots, one shard and one part of the batch at a time, on the calling thread.
/// Scores, weights and their gradients are [Nq,N,B,H]: the lanes of a pair lie together. Pointers
/// lead to the first sample of the part. An object serves one thread.
template <typename T>
class RelativePasses {
 public:
  RelativePasses(const SlotPlan& plan, const Sizes& sizes);

  /// scores[i,j] = q_ij . k_ij per head. Where `kept` [plan.rows,B,width] is not null the encodings
  /// are left there, for scores_backward.
  void scores(int shard, const Side<T>& q, const Side<T>& k, T* kept, T* scores);
  /// out[i] += sum_j weights[i,j] v_ij, into the shard's accumulator [Nq,B,width].
  void values(int shard, const Side<T>& v, const T* weights, T* out);
  /// d_weights[i,j] = d_out[i] . v_ij per head, and the gradients of v.
  void values_backward(int shard, const Side<T>& v, const T* weights, const T* d_out, T* d_weights,
                       const SideGradient<T>& dv);
  /// Gradients of q and k from d_scores, which already carry the scale.
  void scores_backward(int shard, const Side<T>& q, const Side<T>& k, const T* kept,
                       const T* d_scores, const SideGradient<T>& dq, const SideGradient<T>& dk);

 private:
  const T* rows(const Side<T>& side, const std::vector<int64_t>& tokens, T* scratch) const;
  [[gnu::always_inline]] const T* encode(const Side<T>& side, int64_t slot,
                                         const std::vector<int64_t>& tokens, T* scratch, T* out);
  void encode_each(const Side<T>& side, int64_t slot, const std::vector<int64_t>& tokens, T* out);
  void add_gradient(const Side<T>& side, const SideGradient<T>& grad, int64_t slot,
                    const std::vector<int64_t>& tokens, const T* d);
  void add_table_gradient(const Side<T>& side, const SideGradient<T>& grad, int64_t slot,
                          const std::vector<int64_t>& tokens, const T* d);
  void add_feature_gradient(const Side<T>& side, T* dx, int64_t slot,
                            const std::vector<int64_t>& tokens, const T* d);
  void wide_values_backward(const Chunk& chunk, const Side<T>& v, const T* weights, const T* d_rows,
                            T* d_weights, const SideGradient<T>& dv);
  void narrow_values_backward(const Chunk& chunk, const Side<T>& v, const T* weights,
                              const T* d_rows, T* d_weights, const SideGradient<T>& dv);
  const T* weighted(const Chunk& chunk, const T* weights, const T* d_rows, int64_t width);
  T* scratch(int which, int64_t count);
  SmallGemm<T>& small(int which, const Side<T>& side);

  const SlotPlan& plan_;
  const Sizes sizes_;
  const RowOps<T>& ops_;
  const HeadOps<T>& heads_;
  std::vector<std::unique_ptr<T[]>> rooms_;
  std::vector<int64_t> room_sizes_;
  struct Small {
    std::unique_ptr<SmallGemm<T>> product;
    int64_t channels = 0, width = 0;
  };
  std::vector<Small> smalls_;
};

}  // namespace translution::kernels
