#include "translution/kernels/relative_bf16_last.h"

#include <algorithm>

namespace translution::kernels {
namespace {

int64_t count_of(const std::vector<int64_t>& tokens) { return static_cast<int64_t>(tokens.size()); }

int64_t padded(int64_t count) { return (count + kTileDepth - 1) / kTileDepth * kTileDepth; }

}  // namespace

Bf16LastPasses::Bf16LastPasses(const SlotPlan& plan, const Sizes& sizes)
    : plan_(plan), sizes_(sizes), ops_(bf16_row_ops()), floats_(row_ops<float>()) {}

// Full tiles are multiplied: beyond k, both operands are 0.
int64_t Bf16LastPasses::depth(int64_t k) const {
  return products_.needs_full_tiles() ? padded(k) : k;
}

void Bf16LastPasses::encode(const Bf16LastSide& side, int64_t slot, const Tokens& tokens,
                            Encoded& out) {
  const int64_t B = sizes_.batch, C = side.channels, E = side.width;
  const int64_t x_size = packed_size(C, B), size = packed_size(E, B);
  out.rows.resize(tokens.size());
  if (side.table_transposed == nullptr) {
    for (size_t t = 0; t < tokens.size(); ++t) out.rows[t] = side.x + tokens[t] * x_size;
    return;
  }
  Bf16* const encodings = out.buffer.with(count_of(tokens) * size);
  const Bf16* const matrix = side.table_transposed + slot * E * padded(C);
  for (size_t t = 0; t < tokens.size(); ++t) {
    out.rows[t] = encodings + t * size;
    products_.multiply_packed(E, matrix, padded(C),
                              PackedMatrix(side.x + tokens[t] * x_size, depth(C), B),
                              encodings + t * size);
  }
}

void Bf16LastPasses::allocate_zeros(int64_t tokens, int64_t width, Scaled& out) {
  const int64_t B = sizes_.batch;
  out.packed_size = packed_size(width, B), out.matrix_size = width * padded(B);
  std::fill_n(out.packed.with(tokens * out.packed_size), tokens * out.packed_size, Bf16{0});
  std::fill_n(out.matrix.with(tokens * out.matrix_size), tokens * out.matrix_size, Bf16{0});
}

// weight * x, summed over the pairs of each key from rows of queries, or of each query from rows of
// keys, then rounded.
void Bf16LastPasses::scale(const Chunk& chunk, const float* weights,
                           const std::vector<const Bf16*>& x, bool to_keys, int64_t width,
                           Scaled& out) {
  const int64_t B = sizes_.batch, H = sizes_.heads, D = width / H, block = B * width;
  const int64_t count = count_of(to_keys ? chunk.keys : chunk.queries);
  Bf16* const packed = out.packed.with(0);
  Bf16* const matrix = out.matrix.with(0);
  float* const sums = chunk.matching ? nullptr : sums_.with(count * block);
  if (sums) std::fill_n(sums, count * block, 0.0f);
  for (const auto& pair : chunk.pairs) {
    const int32_t from = to_keys ? pair.query : pair.key, to = to_keys ? pair.key : pair.query;
    const float* const weight = weights + pair_at(chunk, pair, sizes_);
    if (sums)
      ops_.rows_last.add_scaled(weight, x[from], B, H, D, sizes_.samples, sums + to * block);
    else
      ops_.rows_last.scale(weight, x[from], B, H, D, sizes_.samples, packed + to * out.packed_size,
                           matrix + to * out.matrix_size, padded(B));
  }
  for (int64_t t = 0; sums && t < count; ++t) {
    ops_.pack(sums + t * block, B, width, B, packed + t * out.packed_size);
    for (int64_t c = 0; c < width; ++c)
      ops_.round(sums + t * block + c * B, B, matrix + t * out.matrix_size + c * padded(B));
  }
}

// dtable[slot] += x d^T and dx += table[slot] d, token by token.
void Bf16LastPasses::add_gradient(const Bf16LastSide& side, const SideGradient<float>& grad,
                                  int64_t slot, const Tokens& tokens, Scaled& d) {
  const int64_t B = sizes_.batch, C = side.channels, E = side.width;
  const Bf16* const packed = d.packed.with(0);
  const Bf16* const matrix = d.matrix.with(0);
  if (grad.dtable != nullptr) {
    float* const transposed = sums_.with(E * C);  // the transpose of the table's gradient
    for (size_t t = 0; t < tokens.size(); ++t)
      products_.multiply(
          E, matrix + t * d.matrix_size, padded(B),
          PackedMatrix(side.x_transposed + tokens[t] * packed_size(B, C), depth(B), C), t > 0,
          transposed, C);
    floats_.transpose(transposed, E, C, C, 1, grad.written[slot] ? 1 : 0,
                      grad.dtable + slot * C * E, E);
    grad.written[slot] = 1;
  }
  if (grad.dx == nullptr) return;
  for (size_t t = 0; t < tokens.size(); ++t) {
    float* const to = grad.dx + tokens[t] * B * C;
    if (side.table != nullptr) {
      products_.multiply(C, side.table + slot * C * padded(E), padded(E),
                         PackedMatrix(packed + t * d.packed_size, depth(E), B), true, to, B);
    } else {
      float* const wide = sums_.with(B * C);
      ops_.unpack(packed + t * d.packed_size, padded(C) * kTileColumns, C, B, wide, B);
      floats_.add(wide, B * C, to);
    }
  }
}

void Bf16LastPasses::scores(int shard, const Bf16LastSide& q, const Bf16LastSide& k, Bf16*,
                            float* scores) {
  const int64_t B = sizes_.batch, H = sizes_.heads, E = q.width;
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    encode(q, chunk.slot, chunk.queries, query_);
    encode(k, chunk.key_slot, chunk.keys, key_);
    for (const auto& pair : chunk.pairs)
      ops_.rows_last.dots(query_.rows[pair.query], key_.rows[pair.key], B, H, E / H, sizes_.samples,
                          scores + pair_at(chunk, pair, sizes_));
  }
}

void Bf16LastPasses::values(int shard, const Bf16LastSide& v, const float* weights, float* out) {
  const int64_t B = sizes_.batch, H = sizes_.heads, F = v.width;
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    encode(v, chunk.slot, chunk.keys, key_);
    for (const auto& pair : chunk.pairs)
      ops_.rows_last.add_scaled(weights + pair_at(chunk, pair, sizes_), key_.rows[pair.key], B, H,
                                F / H, sizes_.samples, out + chunk.queries[pair.query] * B * F);
  }
}

void Bf16LastPasses::values_backward(int shard, const Bf16LastSide& v, const float* weights,
                                     const Bf16* d_out, float* d_weights,
                                     const SideGradient<float>& dv) {
  const int64_t B = sizes_.batch, H = sizes_.heads, F = v.width;
  const Bf16LastSide d_side{d_out, nullptr, nullptr, nullptr, F, F};
  const bool needs_gradient = dv.dtable != nullptr || dv.dx != nullptr;
  if (needs_gradient) allocate_zeros(plan_.max_keys, F, d_key_);
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    encode(v, chunk.slot, chunk.keys, key_);
    encode(d_side, 0, chunk.queries, query_);
    for (const auto& pair : chunk.pairs)
      ops_.rows_last.dots(query_.rows[pair.query], key_.rows[pair.key], B, H, F / H, sizes_.samples,
                          d_weights + pair_at(chunk, pair, sizes_));
    if (!needs_gradient) continue;
    scale(chunk, weights, query_.rows, /*to_keys=*/true, F, d_key_);
    add_gradient(v, dv, chunk.slot, chunk.keys, d_key_);
  }
}

void Bf16LastPasses::scores_backward(int shard, const Bf16LastSide& q, const Bf16LastSide& k,
                                     const Bf16*, const float* d_scores,
                                     const SideGradient<float>& dq, const SideGradient<float>& dk) {
  const int64_t E = q.width;
  allocate_zeros(plan_.max_queries, E, d_query_);
  allocate_zeros(plan_.max_keys, E, d_key_);
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    encode(q, chunk.slot, chunk.queries, query_);
    encode(k, chunk.key_slot, chunk.keys, key_);
    scale(chunk, d_scores, key_.rows, /*to_keys=*/false, E, d_query_);
    scale(chunk, d_scores, query_.rows, /*to_keys=*/true, E, d_key_);
    add_gradient(q, dq, chunk.slot, chunk.queries, d_query_);
    add_gradient(k, dk, chunk.key_slot, chunk.keys, d_key_);
  }
}

}  // namespace translution::kernels
