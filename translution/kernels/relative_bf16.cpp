#include "translution/kernels/relative_bf16.h"

#include <algorithm>
#include <cstring>

namespace translution::kernels {
namespace {

enum Which { kQueries, kKeys };  // values use kQueries

int64_t count_of(const std::vector<int64_t>& tokens) { return static_cast<int64_t>(tokens.size()); }

}  // namespace

Bf16RelativePasses::Bf16RelativePasses(const SlotPlan& plan, const Sizes& sizes)
    : plan_(plan), sizes_(sizes), ops_(bf16_row_ops()), floats_(row_ops<float>()) {}

PackedMatrix Bf16RelativePasses::packed(const Bf16Side& side, int64_t slot, bool transposed,
                                        PackedCache& cache) {
  const int64_t C = side.channels, E = side.width;
  const int64_t k = transposed ? E : C, n = transposed ? C : E;
  const auto& [straight, transposed_tiles, floats, halves] = side.table;
  if (const Bf16* const copies = transposed ? transposed_tiles : straight)
    return {copies + slot * packed_size(k, n), k, n};
  const void* const table = floats ? static_cast<const void*>(floats) : halves;
  Bf16* const tiles = cache.tiles.with(packed_size(k, n));
  if (cache.table != table || cache.slot != slot) {
    if (floats)
      (transposed ? ops_.pack_transposed : ops_.pack)(floats + slot * C * E, E, k, n, tiles);
    else
      (transposed ? ops_.pack_transposed_bf16 : ops_.pack_bf16)(halves + slot * C * E, E, k, n,
                                                                tiles);
    cache.table = table, cache.slot = slot;
  }
  return {tiles, k, n};
}

PackedMatrix Bf16RelativePasses::straight(const Bf16Side& side, int64_t slot, int which) {
  return packed(side, slot, /*transposed=*/false, straight_[which]);
}

PackedMatrix Bf16RelativePasses::transposed(const Bf16Side& side, int64_t slot, int which) {
  return packed(side, slot, /*transposed=*/true, transposed_[which]);
}

// The rows of the tokens as one matrix [tokens * B, channels]. Copies only if the tokens are not
// consecutive.
const Bf16* Bf16RelativePasses::rows(const Bf16* x, int64_t channels, const Tokens& tokens,
                                     Bf16* buffer) const {
  const int64_t block = sizes_.batch * channels;
  if (are_consecutive(tokens)) return x + tokens[0] * block;
  for (size_t t = 0; t < tokens.size(); ++t)
    std::memcpy(buffer + t * block, x + tokens[t] * block, block * sizeof(Bf16));
  return buffer;
}

const Bf16* Bf16RelativePasses::features(const Bf16Side& side, const Tokens& tokens) {
  return rows(side.x, side.channels, tokens,
              gathered_.with(count_of(tokens) * sizes_.batch * side.channels));
}

// Without a table, the encodings are the features themselves, copied to `out` only if the tokens
// are not consecutive.
const Bf16* Bf16RelativePasses::encode(const Bf16Side& side, int64_t slot, const Tokens& tokens,
                                       int which, Bf16* out) {
  if (!side.table.defined()) return rows(side.x, side.channels, tokens, out);
  products_.multiply_rounded(count_of(tokens) * sizes_.batch, features(side, tokens), side.channels,
                             straight(side, slot, which), out);
  return out;
}

// dtable[slot] += x^T d and dx += d table[slot]^T, summed over the rows of the tokens.
void Bf16RelativePasses::add_gradient(const Bf16Side& side, const SideGradient<float>& grad,
                                      int64_t slot, const Tokens& tokens, int which,
                                      const Bf16* d) {
  const int64_t C = side.channels, E = side.width;
  if (grad.dtable != nullptr) {
    products_.weight_gradient(count_of(tokens) * sizes_.batch, C, E, features(side, tokens), C, d,
                              E, grad.written[slot] != 0, grad.dtable + slot * C * E, E);
    grad.written[slot] = 1;
  }
  if (grad.dx != nullptr) add_feature_gradient(side, grad.dx, slot, tokens, which, d);
}

void Bf16RelativePasses::add_feature_gradient(const Bf16Side& side, float* dx, int64_t slot,
                                              const Tokens& tokens, int which, const Bf16* d) {
  const int64_t B = sizes_.batch, C = side.channels, E = side.width, block = B * C;
  const int64_t count = count_of(tokens);
  float* from;  // rows to be added token by token
  if (side.table.defined()) {
    const bool in_place = are_consecutive(tokens);
    from = in_place ? dx + tokens[0] * block : sums_.with(count * block);
    products_.multiply(count * B, d, E, transposed(side, slot, which), in_place, from, C);
    if (in_place) return;
  } else {
    from = sums_.with(count * block);
    ops_.widen(d, count * block, from);
  }
  for (int64_t t = 0; t < count; ++t) floats_.add(from + t * block, block, dx + tokens[t] * block);
}

void Bf16RelativePasses::scores(int shard, const Bf16Side& q, const Bf16Side& k, Bf16* saved,
                                float* scores) {
  const int64_t B = sizes_.batch, H = sizes_.heads, E = q.width;
  Bf16* const q_buffer = query_.with(plan_.max_queries * B * E);
  Bf16* const k_buffer = key_.with(plan_.max_keys * B * E);
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    Bf16* const to = saved ? saved + chunk.first_row * B * E : nullptr;
    const Bf16* const q_rows = encode(q, chunk.slot, chunk.queries, kQueries, to ? to : q_buffer);
    const Bf16* const k_rows = encode(k, chunk.key_slot, chunk.keys, kKeys,
                                      to ? to + count_of(chunk.queries) * B * E : k_buffer);
    for (const auto& pair : chunk.pairs)
      ops_.heads.dots(q_rows + pair.query * B * E, k_rows + pair.key * B * E, B, H, E / H,
                      scores + pair_at(chunk, pair, sizes_));
  }
}

void Bf16RelativePasses::values(int shard, const Bf16Side& v, const float* weights, float* out) {
  const int64_t B = sizes_.batch, H = sizes_.heads, F = v.width;
  Bf16* const buffer = key_.with(plan_.max_keys * B * F);
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    const Bf16* const v_rows = encode(v, chunk.slot, chunk.keys, kQueries, buffer);
    for (const auto& pair : chunk.pairs)
      ops_.heads.add_scaled(weights + pair_at(chunk, pair, sizes_), v_rows + pair.key * B * F, B, H,
                            F / H, out + chunk.queries[pair.query] * B * F);
  }
}

void Bf16RelativePasses::values_backward(int shard, const Bf16Side& v, const float* weights,
                                         const Bf16* d_out, float* d_weights,
                                         const SideGradient<float>& dv) {
  const int64_t F = v.width;
  const bool by_head = v.table.defined() && F / sizes_.heads % kTileDepth == 0;
  const SideGradient<float> table_only{nullptr, dv.dtable, dv.written};
  Bf16* const buffer = query_.with(plan_.max_queries * sizes_.batch * F);
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    const Bf16* const d_rows = rows(d_out, F, chunk.queries, buffer);
    if (by_head)
      values_backward_by_head(chunk, v, weights, d_rows, d_weights, dv.dx);
    else
      values_backward_encoded(chunk, v, d_rows, d_weights);
    if (by_head ? dv.dtable == nullptr : dv.dtable == nullptr && dv.dx == nullptr) continue;
    add_gradient(v, by_head ? table_only : dv, chunk.slot, chunk.keys, kQueries,
                 scaled(chunk, weights, d_rows, /*to_keys=*/true, F, d_key_));
  }
}

// Per head, u = d_out Wv^T is used twice, as in RelativePasses::wide_values_backward. It is
// consumed a few rows at a time, while it is in the cache, unless a query has several pairs.
void Bf16RelativePasses::values_backward_by_head(const Chunk& chunk, const Bf16Side& v,
                                                 const float* weights, const Bf16* d_rows,
                                                 float* d_weights, float* dx) {
  const int64_t B = sizes_.batch, H = sizes_.heads, F = v.width, C = v.channels, D = F / H;
  const int64_t queries = count_of(chunk.queries);
  const int64_t step =
      chunk.matching ? std::max<int64_t>(1, products_.rows_at_once() / B) : queries;
  const Bf16* const x_rows = features(v, chunk.keys);
  float* const u = sums_.with((step + 1) * B * C);
  float* const discarded = u + step * B * C;
  const PackedMatrix matrix = transposed(v, chunk.slot, kQueries);  // [F,C]
  for (int64_t first = 0; first < queries; first += step) {
    const int64_t count = std::min(step, queries - first);
    const int64_t pairs = chunk.matching ? count : static_cast<int64_t>(chunk.pairs.size());
    for (int64_t h = 0; h < H; ++h) {
      products_.multiply(count * B, d_rows + first * B * F + h * D, F, matrix.rows(h * D, D), false,
                         u, C);
      for (int64_t p = 0; p < pairs; ++p) {
        const auto& pair = chunk.pairs[(chunk.matching ? first : 0) + p];
        const int64_t lanes = pair_at(chunk, pair, sizes_) + h;
        ops_.dot_and_add(u + (pair.query - first) * B * C, x_rows + pair.key * B * C,
                         weights + lanes, B, H, C, d_weights + lanes,
                         dx ? dx + chunk.keys[pair.key] * B * C : discarded);
      }
    }
  }
}

// If heads do not fill tiles, v is recomputed.
void Bf16RelativePasses::values_backward_encoded(const Chunk& chunk, const Bf16Side& v,
                                                 const Bf16* d_rows, float* d_weights) {
  const int64_t B = sizes_.batch, H = sizes_.heads, F = v.width;
  const Bf16* const v_rows =
      encode(v, chunk.slot, chunk.keys, kQueries, key_.with(plan_.max_keys * B * F));
  for (const auto& pair : chunk.pairs)
    ops_.heads.dots(d_rows + pair.query * B * F, v_rows + pair.key * B * F, B, H, F / H,
                    d_weights + pair_at(chunk, pair, sizes_));
}

// weight * x, summed over the pairs of each key from rows of queries, or of each query from rows of
// keys, then rounded.
const Bf16* Bf16RelativePasses::scaled(const Chunk& chunk, const float* weights, const Bf16* x,
                                       bool to_keys, int64_t width, Scratch<Bf16>& buffer) {
  const int64_t B = sizes_.batch, H = sizes_.heads, D = width / H, block = B * width;
  const int64_t count = count_of(to_keys ? chunk.keys : chunk.queries);
  Bf16* const out = buffer.with(count * block);
  float* const sums = chunk.matching ? nullptr : sums_.with(count * block);
  if (sums) std::fill_n(sums, count * block, 0.0f);
  for (const auto& pair : chunk.pairs) {
    const auto [from, to] =
        to_keys ? std::pair{pair.query, pair.key} : std::pair{pair.key, pair.query};
    const float* const weight = weights + pair_at(chunk, pair, sizes_);
    if (sums)
      ops_.heads.add_scaled(weight, x + from * block, B, H, D, sums + to * block);
    else
      ops_.heads.scale(weight, x + from * block, B, H, D, out + to * block);
  }
  if (sums) ops_.round(sums, count * block, out);
  return out;
}

void Bf16RelativePasses::scores_backward(int shard, const Bf16Side& q, const Bf16Side& k,
                                         const Bf16* saved, const float* d_scores,
                                         const SideGradient<float>& dq,
                                         const SideGradient<float>& dk) {
  const int64_t B = sizes_.batch, E = q.width;
  Bf16* const q_buffer = query_.with(plan_.max_queries * B * E);
  Bf16* const k_buffer = key_.with(plan_.max_keys * B * E);
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    const Bf16* const saved_rows = saved ? saved + chunk.first_row * B * E : nullptr;
    const Bf16* const q_rows = saved_rows && q.table.defined()
                                   ? saved_rows
                                   : encode(q, chunk.slot, chunk.queries, kQueries, q_buffer);
    const Bf16* const k_rows = saved_rows && k.table.defined()
                                   ? saved_rows + count_of(chunk.queries) * B * E
                                   : encode(k, chunk.key_slot, chunk.keys, kKeys, k_buffer);
    add_gradient(q, dq, chunk.slot, chunk.queries, kQueries,
                 scaled(chunk, d_scores, k_rows, /*to_keys=*/false, E, d_query_));
    add_gradient(k, dk, chunk.key_slot, chunk.keys, kKeys,
                 scaled(chunk, d_scores, q_rows, /*to_keys=*/true, E, d_key_));
  }
}

}  // namespace translution::kernels
