#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "translution/kernels/gemm.h"
#include "translution/kernels/row_ops.h"
#include "translution/kernels/slot_plan.h"

namespace translution::kernels {

/// One relative side (q, k or v), token-major: x [tokens,B,channels] times table
/// [M,channels,width]. Without a table, the encoding is x itself and width = channels.
template <typename T>
struct Side {
  const T* x = nullptr;
  const T* table = nullptr;
  int64_t channels = 0, width = 0;
  const T* rows = nullptr;  ///< x with the samples first, if batch_last
};

/// Outputs for a side's gradients; null: not needed.
template <typename T>
struct SideGradient {
  T* dx = nullptr;          ///< the shard's accumulator [tokens,B,channels]
  T* dtable = nullptr;      ///< [M,channels,width]
  char* written = nullptr;  ///< [M]: 1 if the row of dtable holds a sum; 0: overwrite it
};

struct Sizes {
  int64_t batch;    ///< samples in the part of the batch that a pass works on
  int64_t samples;  ///< samples in the complete batch; determines the strides of scores
  int64_t tokens, heads;
  /// Whether the batch is the innermost dimension, [tokens,channels,B] and [Nq,N,H,B], so that
  /// narrow channels still fill vectors. Each token is then a separate product.
  bool batch_last;
};

/// Index of a pair's first score in [Nq,N,B,H] or [Nq,N,H,B].
inline int64_t pair_at(const Chunk& chunk, const Chunk::Pair& pair, const Sizes& sizes) {
  return (chunk.queries[pair.query] * sizes.tokens + chunk.keys[pair.key]) * sizes.samples *
         sizes.heads;
}

/// Whether the tokens are consecutive and ascending.
bool are_consecutive(const std::vector<int64_t>& tokens);

/// The passes over the slots, one shard and one part of the batch at a time, on the calling thread.
/// Scores, weights and their gradients are [Nq,N,B,H], so the lanes of a pair are contiguous.
/// Pointers point to the first sample of the part. Use one object per thread.
template <typename T>
class RelativePasses {
 public:
  RelativePasses(const SlotPlan& plan, const Sizes& sizes);

  /// scores[i,j] = q_ij . k_ij per head. If `saved` [plan.rows,B,width] is not null, stores the
  /// encodings there for scores_backward.
  void scores(int shard, const Side<T>& q, const Side<T>& k, T* saved, T* scores);
  /// out[i] += sum_j weights[i,j] v_ij, into the shard's accumulator [Nq,B,width].
  void values(int shard, const Side<T>& v, const T* weights, T* out);
  /// d_weights[i,j] = d_out[i] . v_ij per head, and the gradients of v.
  void values_backward(int shard, const Side<T>& v, const T* weights, const T* d_out, T* d_weights,
                       const SideGradient<T>& dv);
  /// Gradients of q and k from d_scores, which already include the scale.
  void scores_backward(int shard, const Side<T>& q, const Side<T>& k, const T* saved,
                       const T* d_scores, const SideGradient<T>& dq, const SideGradient<T>& dk);

 private:
  const T* rows(const Side<T>& side, const std::vector<int64_t>& tokens, T* buffer) const;
  [[gnu::always_inline]] const T* encode(const Side<T>& side, int64_t slot,
                                         const std::vector<int64_t>& tokens, T* buffer, T* out);
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
  SmallGemm<T>& token_product(int which, const Side<T>& side);

  const SlotPlan& plan_;
  const Sizes sizes_;
  const RowOps<T>& ops_;
  const HeadOps<T>& heads_;
  std::vector<std::unique_ptr<T[]>> buffers_;
  std::vector<int64_t> buffer_sizes_;
  struct TokenProduct {
    std::unique_ptr<SmallGemm<T>> product;
    int64_t channels = 0, width = 0;
  };
  std::vector<TokenProduct> products_;
};

}  // namespace translution::kernels
