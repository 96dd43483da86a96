#pragma once

#include "translution/kernels/bf16.h"
#include "translution/kernels/content.h"
#include "translution/kernels/scratch.h"

namespace translution::kernels {

/// ContentPasses<float> with bfloat16 products. The operands of every product are rounded; q, k, v,
/// their gradients and the maps stay float32. Each operand is rounded once per pass and item,
/// directly into the layout that the product needs.
class Bf16ContentPasses {
 public:
  using Shape = ContentPasses<float>::Shape;
  explicit Bf16ContentPasses(const Shape& shape, Isa isa = chosen_isa());

  /// maps = q k^T for the items [begin, end).
  void scores(int64_t begin, int64_t end, Features<const float> q, Features<const float> k,
              float* maps);
  /// out = maps v.
  void values(int64_t begin, int64_t end, const float* maps, Features<const float> v,
              Features<float> out);
  /// d_maps = d_out v^T, and dv = maps^T d_out; either may be null.
  void values_backward(int64_t begin, int64_t end, const float* maps, Features<const float> v,
                       Features<const float> d_out, float* d_maps, Features<float> dv);
  /// dq = d_scores k, dk = d_scores^T q; either may be null.
  void scores_backward(int64_t begin, int64_t end, Features<const float> q, Features<const float> k,
                       const float* d_scores, Features<float> dq, Features<float> dk);

 private:
  /// A matrix [rows, cols] of floats with row stride `stride`.
  struct Floats {
    const float* data;
    int64_t stride, rows, cols;
  };
  /// The left operand of a product, with row stride `stride`.
  struct Left {
    const Bf16* data;
    int64_t stride, rows;
  };
  Left rounded(const Floats& x);
  Left transposed(const Floats& x);
  PackedMatrix packed(const Floats& x);
  PackedMatrix packed_transposed(const Floats& x);
  int64_t depth(int64_t count) const;
  void multiply(const Left& left, const PackedMatrix& right, float* out, int64_t stride);

  Floats features(const Features<const float>& x, int64_t item, int64_t rows, int64_t width) const {
    return {head_of(x, item, shape_.heads, width), x.row_stride, rows, width};
  }
  Floats map(const float* maps, int64_t item) const {
    return {maps + item * map_size(), shape_.tokens, shape_.queries, shape_.tokens};
  }
  int64_t map_size() const { return shape_.queries * shape_.tokens; }

  const Shape shape_;
  const Isa isa_;
  const Bf16RowOps& ops_;
  Bf16Products products_;
  Scratch<Bf16> left_, right_;
};

}  // namespace translution::kernels
