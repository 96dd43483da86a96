#include "translution/kernels/content_bf16.h"

namespace translution::kernels {
namespace {

int64_t padded(int64_t depth) { return (depth + kTileDepth - 1) / kTileDepth * kTileDepth; }

}  // namespace

Bf16ContentPasses::Bf16ContentPasses(const Shape& shape, Isa isa)
    : shape_(shape), isa_(isa), ops_(bf16_row_ops(isa)), products_(isa) {}

// Both operands are zero-padded beyond their depth. Tiles multiply the padding, too, since a partly
// filled tile would need another copy.
int64_t Bf16ContentPasses::depth(int64_t count) const {
  return isa_ == Isa::amx ? padded(count) : count;
}

Bf16ContentPasses::Left Bf16ContentPasses::rounded(const Floats& x) {
  const int64_t stride = padded(x.cols);
  Bf16* const out = left_.with(x.rows * stride);
  ops_.round_rows(x.data, x.stride, x.rows, x.cols, out, stride);
  return {out, stride, x.rows};
}

Bf16ContentPasses::Left Bf16ContentPasses::transposed(const Floats& x) {
  const int64_t stride = padded(x.rows);
  Bf16* const out = left_.with(x.cols * stride);
  ops_.round_transposed(x.data, x.stride, x.rows, x.cols, out, stride);
  return {out, stride, x.cols};
}

PackedMatrix Bf16ContentPasses::packed(const Floats& x) {
  Bf16* const out = right_.with(packed_size(x.rows, x.cols));
  ops_.pack(x.data, x.stride, x.rows, x.cols, out);
  return {out, depth(x.rows), x.cols};
}

PackedMatrix Bf16ContentPasses::packed_transposed(const Floats& x) {
  Bf16* const out = right_.with(packed_size(x.cols, x.rows));
  ops_.pack_transposed(x.data, x.stride, x.cols, x.rows, out);
  return {out, depth(x.cols), x.rows};
}

void Bf16ContentPasses::multiply(const Left& left, const PackedMatrix& right, float* out,
                                 int64_t stride) {
  products_.multiply(left.rows, left.data, left.stride, right, false, out, stride);
}

void Bf16ContentPasses::scores(int64_t begin, int64_t end, Features<const float> q,
                               Features<const float> k, float* maps) {
  const int64_t Nq = shape_.queries, N = shape_.tokens, D = shape_.width;
  for (int64_t item = begin; item < end; ++item)
    multiply(rounded(features(q, item, Nq, D)), packed_transposed(features(k, item, N, D)),
             maps + item * map_size(), N);
}

void Bf16ContentPasses::values(int64_t begin, int64_t end, const float* maps,
                               Features<const float> v, Features<float> out) {
  const int64_t N = shape_.tokens, F = shape_.value_width;
  for (int64_t item = begin; item < end; ++item)
    multiply(rounded(map(maps, item)), packed(features(v, item, N, F)),
             head_of(out, item, shape_.heads, F), out.row_stride);
}

void Bf16ContentPasses::values_backward(int64_t begin, int64_t end, const float* maps,
                                        Features<const float> v, Features<const float> d_out,
                                        float* d_maps, Features<float> dv) {
  const int64_t Nq = shape_.queries, N = shape_.tokens, F = shape_.value_width;
  for (int64_t item = begin; item < end; ++item) {
    const Floats d = features(d_out, item, Nq, F);
    if (d_maps)
      multiply(rounded(d), packed_transposed(features(v, item, N, F)), d_maps + item * map_size(),
               N);
    if (dv.data)
      multiply(transposed(map(maps, item)), packed(d), head_of(dv, item, shape_.heads, F),
               dv.row_stride);
  }
}

void Bf16ContentPasses::scores_backward(int64_t begin, int64_t end, Features<const float> q,
                                        Features<const float> k, const float* d_scores,
                                        Features<float> dq, Features<float> dk) {
  const int64_t Nq = shape_.queries, N = shape_.tokens, D = shape_.width;
  for (int64_t item = begin; item < end; ++item) {
    const Floats d = map(d_scores, item);
    if (dq.data)
      multiply(rounded(d), packed(features(k, item, N, D)), head_of(dq, item, shape_.heads, D),
               dq.row_stride);
    if (dk.data)
      multiply(transposed(d), packed(features(q, item, Nq, D)), head_of(dk, item, shape_.heads, D),
               dk.row_stride);
  }
}

}  // namespace translution::kernels
