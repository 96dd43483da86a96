#include "translution/kernels/relative.h"

#include <algorithm>
#include <cstring>

namespace translution::kernels {
namespace {

// With at least this many channels per head, the gradient of values is computed per head.
constexpr int64_t kWideHead = 32;

enum Buffer { kGather, kQuery, kKey, kQueryGradient, kKeyGradient, kProduct, kBuffers };
enum Product { kEncode, kTableGradient, kFeatureGradient, kProducts };

}  // namespace

bool are_consecutive(const std::vector<int64_t>& tokens) {
  for (size_t t = 1; t < tokens.size(); ++t)
    if (tokens[t] != tokens[0] + static_cast<int64_t>(t)) return false;
  return true;
}

template <typename T>
RelativePasses<T>::RelativePasses(const SlotPlan& plan, const Sizes& sizes)
    : plan_(plan),
      sizes_(sizes),
      ops_(row_ops<T>()),
      heads_(sizes.batch_last ? ops_.rows_last : ops_.heads),
      buffers_(kBuffers),
      buffer_sizes_(kBuffers, 0),
      products_(kProducts) {}

template <typename T>
T* RelativePasses<T>::scratch(int which, int64_t count) {
  if (buffer_sizes_[which] < count) {
    buffers_[which].reset(new T[count]);
    buffer_sizes_[which] = count;
  }
  return buffers_[which].get();
}

// The cached product of one token if the batch is innermost; sides of equal sizes share it.
template <typename T>
SmallGemm<T>& RelativePasses<T>::token_product(int which, const Side<T>& side) {
  const int64_t B = sizes_.batch, C = side.channels, E = side.width;
  auto& [product, channels, width] = products_[which];
  if (product != nullptr && channels == C && width == E) return *product;
  channels = C, width = E;
  if (which == kEncode)  // out [E,B] = table^T [E,C] x [C,B]
    product = std::make_unique<SmallGemm<T>>(true, E, B, C, E, B, 0, B);
  else if (which == kTableGradient)  // sum [E,C] += d [E,B] rows [B,C]
    product = std::make_unique<SmallGemm<T>>(false, E, C, B, B, C, 1, C);
  else  // dx [C,B] += table [C,E] d [E,B]
    product = std::make_unique<SmallGemm<T>>(false, C, B, E, E, B, 1, B);
  return *product;
}

// The rows of the tokens as one matrix [tokens * B, channels]. Copies only if the tokens are not
// consecutive.
template <typename T>
const T* RelativePasses<T>::rows(const Side<T>& side, const std::vector<int64_t>& tokens,
                                 T* buffer) const {
  const int64_t block = sizes_.batch * side.channels;
  if (are_consecutive(tokens)) return side.x + tokens[0] * block;
  for (size_t t = 0; t < tokens.size(); ++t)
    std::memcpy(buffer + t * block, side.x + tokens[t] * block, block * sizeof(T));
  return buffer;
}

template <typename T>
inline const T* RelativePasses<T>::encode(const Side<T>& side, int64_t slot,
                                          const std::vector<int64_t>& tokens, T* buffer, T* out) {
  if (side.table == nullptr) return rows(side, tokens, out);
  if (sizes_.batch_last) {
    encode_each(side, slot, tokens, out);
    return out;
  }
  const int64_t count = static_cast<int64_t>(tokens.size()) * sizes_.batch;
  gemm<T>(false, false, count, side.width, side.channels, rows(side, tokens, buffer), side.channels,
          side.table + slot * side.channels * side.width, side.width, 0, out, side.width);
  return out;
}

// Batch innermost, [width,B] = table^T [channels,B]: token by token, so nothing is gathered.
template <typename T>
void RelativePasses<T>::encode_each(const Side<T>& side, int64_t slot,
                                    const std::vector<int64_t>& tokens, T* out) {
  const int64_t B = sizes_.batch, C = side.channels, E = side.width;
  auto& product = token_product(kEncode, side);
  for (size_t t = 0; t < tokens.size(); ++t)
    product(side.table + slot * C * E, side.x + tokens[t] * B * C, out + t * B * E);
}

// dtable[slot] += x^T d and dx += d table[slot]^T, summed over the rows of the tokens.
template <typename T>
void RelativePasses<T>::add_gradient(const Side<T>& side, const SideGradient<T>& grad, int64_t slot,
                                     const std::vector<int64_t>& tokens, const T* d) {
  if (grad.dtable != nullptr) add_table_gradient(side, grad, slot, tokens, d);
  if (grad.dx != nullptr) add_feature_gradient(side, grad.dx, slot, tokens, d);
}

template <typename T>
void RelativePasses<T>::add_table_gradient(const Side<T>& side, const SideGradient<T>& grad,
                                           int64_t slot, const std::vector<int64_t>& tokens,
                                           const T* d) {
  const int64_t B = sizes_.batch, C = side.channels, E = side.width;
  T* const sum = grad.dtable + slot * C * E;
  const T beta = grad.written[slot] ? 1 : 0;
  grad.written[slot] = 1;
  if (!sizes_.batch_last) {
    const int64_t count = static_cast<int64_t>(tokens.size()) * B;
    gemm<T>(true, false, C, E, count, rows(side, tokens, scratch(kGather, count * C)), C, d, E,
            beta, sum, E);
    return;
  }
  T* const transposed =
      scratch(kProduct, E * C);  // d x is [width,channels], the transpose of the table
  std::fill_n(transposed, E * C, T(0));
  auto& product = token_product(kTableGradient, side);
  for (size_t t = 0; t < tokens.size(); ++t)
    product(d + t * B * E, side.rows + tokens[t] * B * C, transposed);
  ops_.transpose(transposed, E, C, C, 1, beta, sum, E);
}

template <typename T>
void RelativePasses<T>::add_feature_gradient(const Side<T>& side, T* dx, int64_t slot,
                                             const std::vector<int64_t>& tokens, const T* d) {
  const int64_t B = sizes_.batch, C = side.channels, E = side.width, block = B * C;
  const int64_t count = static_cast<int64_t>(tokens.size());
  const T* from = d;  // rows to be added token by token
  if (side.table != nullptr) {
    const T* const table = side.table + slot * C * E;
    if (sizes_.batch_last) {
      auto& product = token_product(kFeatureGradient, side);
      for (int64_t t = 0; t < count; ++t) product(table, d + t * B * E, dx + tokens[t] * block);
      return;
    }
    const bool in_place = are_consecutive(tokens);
    T* const product = in_place ? dx + tokens[0] * block : scratch(kProduct, count * block);
    gemm<T>(false, true, count * B, C, E, d, E, table, E, in_place ? 1 : 0, product, C);
    if (in_place) return;
    from = product;
  }
  for (int64_t t = 0; t < count; ++t) ops_.add(from + t * block, block, dx + tokens[t] * block);
}

template <typename T>
void RelativePasses<T>::scores(int shard, const Side<T>& q, const Side<T>& k, T* saved, T* scores) {
  const int64_t B = sizes_.batch, H = sizes_.heads, E = q.width;
  T* gather =
      scratch(kGather, std::max(plan_.max_queries * q.channels, plan_.max_keys * k.channels) * B);
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    T* q_out = saved ? saved + chunk.first_row * B * E : scratch(kQuery, plan_.max_queries * B * E);
    T* k_out = saved ? q_out + static_cast<int64_t>(chunk.queries.size()) * B * E
                     : scratch(kKey, plan_.max_keys * B * E);
    const T* q_rows = encode(q, chunk.slot, chunk.queries, gather, q_out);
    const T* k_rows = encode(k, chunk.key_slot, chunk.keys, gather, k_out);
    for (const auto& pair : chunk.pairs)
      heads_.dots(q_rows + pair.query * B * E, k_rows + pair.key * B * E, B, H, E / H,
                  sizes_.samples, scores + pair_at(chunk, pair, sizes_));
  }
}

template <typename T>
void RelativePasses<T>::values(int shard, const Side<T>& v, const T* weights, T* out) {
  const int64_t B = sizes_.batch, H = sizes_.heads, F = v.width;
  T* gather = scratch(kGather, plan_.max_keys * B * v.channels);
  T* buffer = scratch(kKey, plan_.max_keys * B * F);
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    const T* v_rows = encode(v, chunk.slot, chunk.keys, gather, buffer);
    for (const auto& pair : chunk.pairs)
      heads_.add_scaled(weights + pair_at(chunk, pair, sizes_), v_rows + pair.key * B * F, B, H,
                        F / H, sizes_.samples, out + chunk.queries[pair.query] * B * F);
  }
}

template <typename T>
void RelativePasses<T>::values_backward(int shard, const Side<T>& v, const T* weights,
                                        const T* d_out, T* d_weights, const SideGradient<T>& dv) {
  const Side<T> out_side{d_out, nullptr, v.width, v.width};
  T* buffer = scratch(kQuery, plan_.max_queries * sizes_.batch * v.width);
  const bool by_head =
      v.table != nullptr && !sizes_.batch_last && v.width / sizes_.heads >= kWideHead;
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    const T* d_rows = rows(out_side, chunk.queries, buffer);
    if (by_head)
      wide_values_backward(chunk, v, weights, d_rows, d_weights, dv);
    else
      narrow_values_backward(chunk, v, weights, d_rows, d_weights, dv);
  }
}

// Per head, u = d_out Wv^T is used twice: u . x is the gradient of the weight, and weight * u is
// that of x. This is one matrix product; recomputing v would take two.
template <typename T>
void RelativePasses<T>::wide_values_backward(const Chunk& chunk, const Side<T>& v, const T* weights,
                                             const T* d_rows, T* d_weights,
                                             const SideGradient<T>& dv) {
  const int64_t B = sizes_.batch, H = sizes_.heads, F = v.width, C = v.channels, D = F / H;
  const int64_t queries = static_cast<int64_t>(chunk.queries.size());
  const T* x_rows = rows(v, chunk.keys, scratch(kKey, plan_.max_keys * B * C));
  T* u = scratch(kQueryGradient, plan_.max_queries * B * C);
  T* discarded = dv.dx ? nullptr : scratch(kProduct, B * C);
  for (int64_t h = 0; h < H; ++h) {
    gemm<T>(false, true, queries * B, C, D, d_rows + h * D, F, v.table + chunk.slot * C * F + h * D,
            F, 0, u, C);
    for (const auto& pair : chunk.pairs) {
      const int64_t lanes = pair_at(chunk, pair, sizes_) + h;
      ops_.dot_and_add(u + pair.query * B * C, x_rows + pair.key * B * C, weights + lanes, B, H, C,
                       d_weights + lanes, dv.dx ? dv.dx + chunk.keys[pair.key] * B * C : discarded);
    }
  }
  if (dv.dtable == nullptr) return;
  const SideGradient<T> table_only{nullptr, dv.dtable, dv.written};
  add_gradient(v, table_only, chunk.slot, chunk.keys, weighted(chunk, weights, d_rows, F));
}

// With heads of 8 channels, the products per head of wide_values_backward are too narrow (60
// instead of 120 GFLOP/s), so v is recomputed.
template <typename T>
void RelativePasses<T>::narrow_values_backward(const Chunk& chunk, const Side<T>& v,
                                               const T* weights, const T* d_rows, T* d_weights,
                                               const SideGradient<T>& dv) {
  const int64_t B = sizes_.batch, H = sizes_.heads, F = v.width;
  const T* v_rows =
      encode(v, chunk.slot, chunk.keys, scratch(kGather, plan_.max_keys * B * v.channels),
             scratch(kKey, plan_.max_keys * B * F));
  for (const auto& pair : chunk.pairs)
    heads_.dots(d_rows + pair.query * B * F, v_rows + pair.key * B * F, B, H, F / H, sizes_.samples,
                d_weights + pair_at(chunk, pair, sizes_));
  add_gradient(v, dv, chunk.slot, chunk.keys, weighted(chunk, weights, d_rows, F));
}

// Per key of the chunk, the sum over its pairs of weight * d_rows: [keys * B, width].
template <typename T>
const T* RelativePasses<T>::weighted(const Chunk& chunk, const T* weights, const T* d_rows,
                                     int64_t width) {
  const int64_t B = sizes_.batch, H = sizes_.heads;
  T* sums = scratch(kKeyGradient, plan_.max_keys * B * width);
  if (!chunk.matching) std::fill_n(sums, chunk.keys.size() * B * width, T(0));
  const auto combine = chunk.matching ? heads_.scale : heads_.add_scaled;
  for (const auto& pair : chunk.pairs)
    combine(weights + pair_at(chunk, pair, sizes_), d_rows + pair.query * B * width, B, H,
            width / H, sizes_.samples, sums + pair.key * B * width);
  return sums;
}

template <typename T>
void RelativePasses<T>::scores_backward(int shard, const Side<T>& q, const Side<T>& k,
                                        const T* saved, const T* d_scores,
                                        const SideGradient<T>& dq, const SideGradient<T>& dk) {
  const int64_t B = sizes_.batch, H = sizes_.heads, E = q.width, D = E / H;
  T* gather =
      scratch(kGather, std::max(plan_.max_queries * q.channels, plan_.max_keys * k.channels) * B);
  T* q_buffer = scratch(kQuery, plan_.max_queries * B * E);
  T* k_buffer = scratch(kKey, plan_.max_keys * B * E);
  T* dq_rows = scratch(kQueryGradient, plan_.max_queries * B * E);
  T* dk_rows = scratch(kKeyGradient, plan_.max_keys * B * E);
  for (const int32_t c : plan_.shards[shard]) {
    const Chunk& chunk = plan_.chunks[c];
    const int64_t q_count = static_cast<int64_t>(chunk.queries.size()) * B * E;
    const T* q_rows = saved && q.table ? saved + chunk.first_row * B * E
                                       : encode(q, chunk.slot, chunk.queries, gather, q_buffer);
    const T* k_rows = saved && k.table ? saved + chunk.first_row * B * E + q_count
                                       : encode(k, chunk.key_slot, chunk.keys, gather, k_buffer);
    if (!chunk.matching) {
      std::fill_n(dq_rows, q_count, T(0));
      std::fill_n(dk_rows, chunk.keys.size() * B * E, T(0));
    }
    const auto scale = chunk.matching ? heads_.scale : heads_.add_scaled;
    for (const auto& pair : chunk.pairs) {
      const T* ds = d_scores + pair_at(chunk, pair, sizes_);
      scale(ds, k_rows + pair.key * B * E, B, H, D, sizes_.samples, dq_rows + pair.query * B * E);
      scale(ds, q_rows + pair.query * B * E, B, H, D, sizes_.samples, dk_rows + pair.key * B * E);
    }
    add_gradient(q, dq, chunk.slot, chunk.queries, dq_rows);
    add_gradient(k, dk, chunk.key_slot, chunk.keys, dk_rows);
  }
}

template class RelativePasses<float>;
template class RelativePasses<double>;

}  // namespace translution::kernels
