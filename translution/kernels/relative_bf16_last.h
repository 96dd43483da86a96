#pragma once

#include <cstdint>
#include <vector>

#include "translution/kernels/bf16.h"
#include "translution/kernels/relative.h"
#include "translution/kernels/scratch.h"

namespace translution::kernels {

/// One relative side with the batch innermost, for bfloat16 products. Features of a token are
/// packed as [channels,B] and, for the gradient of a table, as [B,channels]. Tables are row-major
/// bfloat16, with rows zero-padded to a multiple of kTileDepth; both are null if the encoding is x
/// itself.
struct Bf16LastSide {
  const Bf16* x = nullptr;                 ///< [tokens, packed size]
  const Bf16* x_transposed = nullptr;      ///< [tokens, packed size]; null: not needed
  const Bf16* table = nullptr;             ///< [M,channels,width]
  const Bf16* table_transposed = nullptr;  ///< [M,width,channels]
  int64_t channels = 0, width = 0;
};

/// RelativePasses with the batch innermost and bfloat16 products, so that narrow channels still
/// fill vectors. Encodings are rounded and stay packed, ready to be operands of the next product.
class Bf16LastPasses {
 public:
  Bf16LastPasses(const SlotPlan& plan, const Sizes& sizes);

  /// `saved` is null: recomputing encodings this narrow is faster than reading them.
  void scores(int shard, const Bf16LastSide& q, const Bf16LastSide& k, Bf16* saved, float* scores);
  void values(int shard, const Bf16LastSide& v, const float* weights, float* out);
  /// `d_out` is packed as features are: [Nq, packed size] of [width,B].
  void values_backward(int shard, const Bf16LastSide& v, const float* weights, const Bf16* d_out,
                       float* d_weights, const SideGradient<float>& dv);
  void scores_backward(int shard, const Bf16LastSide& q, const Bf16LastSide& k, const Bf16* saved,
                       const float* d_scores, const SideGradient<float>& dq,
                       const SideGradient<float>& dk);

 private:
  using Tokens = std::vector<int64_t>;

  /// Encodings of a chunk's tokens, each packed.
  struct Encoded {
    std::vector<const Bf16*> rows;  ///< point into `buffer` or into the features
    Scratch<Bf16> buffer;
  };
  /// Gradients of a chunk's encodings, each both packed and as a matrix [width, B].
  struct Scaled {
    Scratch<Bf16> packed, matrix;
    int64_t packed_size, matrix_size;
  };

  void encode(const Bf16LastSide& side, int64_t slot, const Tokens& tokens, Encoded& out);
  void scale(const Chunk& chunk, const float* weights, const std::vector<const Bf16*>& x,
             bool to_keys, int64_t width, Scaled& out);
  void allocate_zeros(int64_t tokens, int64_t width, Scaled& out);
  void add_gradient(const Bf16LastSide& side, const SideGradient<float>& grad, int64_t slot,
                    const Tokens& tokens, Scaled& d);
  int64_t depth(int64_t k) const;

  const SlotPlan& plan_;
  const Sizes sizes_;
  const Bf16RowOps& ops_;
  const RowOps<float>& floats_;
  Bf16Products products_;
  Encoded query_, key_;
  Scaled d_query_, d_key_;
  Scratch<float> sums_;
};

}  // namespace translution::kernels
