#pragma once

#include <cstdint>
#include <vector>

#include "translution/kernels/bf16.h"
#include "translution/kernels/relative.h"
#include "translution/kernels/scratch.h"

namespace translution::kernels {

/// A weight table [M,channels,width] for bfloat16 products: packed copies, each [M, packed size],
/// or the table itself, whose matrices are then packed when they are needed.
struct Bf16Table {
  const Bf16* straight = nullptr;    ///< packed [channels,width]; null: not packed
  const Bf16* transposed = nullptr;  ///< packed [width,channels]; null: not packed
  const float* floats = nullptr;     ///< the table in float32, or
  const Bf16* halves = nullptr;      ///< in bfloat16

  bool defined() const { return straight || transposed || floats || halves; }
};

/// One relative side, like Side of relative.h; x [tokens,B,channels] is rounded.
struct Bf16Side {
  const Bf16* x = nullptr;
  Bf16Table table;
  int64_t channels = 0, width = 0;
};

/// RelativePasses with bfloat16 products. Encodings are rounded; scores, weights, sums and
/// gradients are float32.
class Bf16RelativePasses {
 public:
  Bf16RelativePasses(const SlotPlan& plan, const Sizes& sizes);

  void scores(int shard, const Bf16Side& q, const Bf16Side& k, Bf16* saved, float* scores);
  void values(int shard, const Bf16Side& v, const float* weights, float* out);
  /// `d_out` is rounded.
  void values_backward(int shard, const Bf16Side& v, const float* weights, const Bf16* d_out,
                       float* d_weights, const SideGradient<float>& dv);
  void scores_backward(int shard, const Bf16Side& q, const Bf16Side& k, const Bf16* saved,
                       const float* d_scores, const SideGradient<float>& dq,
                       const SideGradient<float>& dk);

 private:
  using Tokens = std::vector<int64_t>;

  /// The last matrix of a table that was packed, cached for the next chunk of the same slot.
  struct PackedCache {
    const void* table = nullptr;
    int64_t slot = -1;
    Scratch<Bf16> tiles;
  };

  PackedMatrix straight(const Bf16Side& side, int64_t slot, int which);
  PackedMatrix transposed(const Bf16Side& side, int64_t slot, int which);
  PackedMatrix packed(const Bf16Side& side, int64_t slot, bool transposed, PackedCache& cache);
  const Bf16* rows(const Bf16* x, int64_t channels, const Tokens& tokens, Bf16* buffer) const;
  const Bf16* features(const Bf16Side& side, const Tokens& tokens);
  const Bf16* encode(const Bf16Side& side, int64_t slot, const Tokens& tokens, int which,
                     Bf16* out);
  void add_gradient(const Bf16Side& side, const SideGradient<float>& grad, int64_t slot,
                    const Tokens& tokens, int which, const Bf16* d);
  void add_feature_gradient(const Bf16Side& side, float* dx, int64_t slot, const Tokens& tokens,
                            int which, const Bf16* d);
  void values_backward_by_head(const Chunk& chunk, const Bf16Side& v, const float* weights,
                               const Bf16* d_rows, float* d_weights, float* dx);
  void values_backward_encoded(const Chunk& chunk, const Bf16Side& v, const Bf16* d_rows,
                               float* d_weights);
  const Bf16* scaled(const Chunk& chunk, const float* weights, const Bf16* x, bool to_keys,
                     int64_t width, Scratch<Bf16>& out);

  const SlotPlan& plan_;
  const Sizes sizes_;
  const Bf16RowOps& ops_;
  const RowOps<float>& floats_;
  Bf16Products products_;
  PackedCache straight_[2], transposed_[2];  // of queries or values, and of keys
  Scratch<Bf16> gathered_, query_, key_, d_query_, d_key_;
  Scratch<float> sums_;
};

}  // namespace translution::kernels
