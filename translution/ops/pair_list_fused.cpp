#include "translution/ops/pair_list_fused.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "translution/kernels/row_ops.h"
#include "translution/ops/fixed_sum.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"

namespace translution {
namespace {

constexpr int64_t kListBlock = 8;  // lists that a thread takes at a time
// Tokens at the other end whose rows these lists read before they go on: with those of the lists
// themselves, they stay in the second-level cache.
constexpr int64_t kOtherBlock = 16;

const int64_t* numbers(const at::Tensor& t) { return t.data_ptr<int64_t>(); }

// The pairs of each token at one end: list l has the places first[l] … first[l + 1] - 1.
struct Lists {
  std::vector<int64_t> first, pairs;  // `pairs` is empty if they are consecutive
  std::vector<int64_t> tokens;        // of each list
  const int64_t* other;               // the token at the other end of a pair
  int64_t count() const { return static_cast<int64_t>(tokens.size()); }
  int64_t blocks() const { return (count() + kListBlock - 1) / kListBlock; }
  int64_t pair(int64_t place) const { return pairs.empty() ? place : pairs[place]; }
};

// Queries ascend: a list per run of equal ones.
Lists lists_by_query(const at::Tensor& query, const at::Tensor& key) {
  Lists lists{{}, {}, {}, numbers(key)};
  const int64_t* const of = numbers(query);
  for (int64_t e = 0; e < query.numel(); ++e)
    if (e == 0 || of[e] != of[e - 1]) lists.first.push_back(e), lists.tokens.push_back(of[e]);
  lists.first.push_back(query.numel());
  return lists;
}

Lists lists_by_key(const PairList& pairs, int64_t tokens) {
  const int64_t count = pairs.key.numel();
  const int64_t* const of = numbers(pairs.key);
  Lists lists{std::vector<int64_t>(tokens + 1, 0), {}, {}, numbers(pairs.query)};
  for (int64_t e = 0; e < count; ++e) ++lists.first[of[e] + 1];
  for (int64_t i = 0; i < tokens; ++i) {
    lists.first[i + 1] += lists.first[i];
    lists.tokens.push_back(i);
  }
  lists.pairs.resize(count);
  std::vector<int64_t> next(lists.first.begin(), lists.first.end() - 1);
  for (int64_t e = 0; e < count; ++e) lists.pairs[next[of[e]]++] = e;
  return lists;
}

// Calls work(token, pair) for the pairs of the lists of a block; those of one list in order. All
// lists go through the tokens at the other end together, a few at a time, so that rows are read
// from the cache. Tokens in no order are visited just the same.
template <typename Work>
void each_pair_of_block(const Lists& lists, int64_t block, Work& work) {
  const int64_t begin = block * kListBlock,
                count = std::min(lists.count() - begin, int64_t{kListBlock});
  int64_t next[kListBlock];
  std::copy_n(lists.first.begin() + begin, count, next);
  for (;;) {
    int64_t lowest = std::numeric_limits<int64_t>::max();
    for (int64_t l = 0; l < count; ++l)
      if (next[l] < lists.first[begin + l + 1])
        lowest = std::min(lowest, lists.other[lists.pair(next[l])]);
    if (lowest == std::numeric_limits<int64_t>::max()) return;
    for (int64_t l = 0; l < count; ++l)
      for (; next[l] < lists.first[begin + l + 1]; ++next[l]) {
        const int64_t e = lists.pair(next[l]);
        if (lists.other[e] >= lowest + kOtherBlock) break;
        work(lists.tokens[begin + l], e);
      }
  }
}

// The same for all lists, each on one thread. make() returns the work of a thread.
template <typename Make>
void each_pair(const Lists& lists, const Make& make) {
  parallel_each(lists.blocks(), [&] {
    return
        [&lists, work = make()](int64_t block) mutable { each_pair_of_block(lists, block, work); };
  });
}

// Reads and writes the rows of an encoding that a pair takes.
template <typename T>
class Rows {
 public:
  Rows(const EncodedRows& encoding, const PairList& pairs)
      : width(encoding.rows.size(1)),
        tapped(encoding.places.defined()),
        shared(tapped && encoding.places.size(0) == 1),
        ops_(kernels::row_ops<T>()),
        rows_(encoding.rows.data_ptr<T>()) {
    if (!tapped) return;
    taps_ = pairs.slots.size(1);
    places_ = numbers(encoding.places);
    slots_ = numbers(pairs.slots);
    phi_ = pairs.phi.data_ptr<T>();
    stride_ = shared ? 0 : encoding.places.size(1);
  }

  // The row of a pair: in place without taps, otherwise in `buffer`.
  const T* row(int64_t pair, int64_t token, T* buffer) const {
    if (!tapped) return rows_ + token * width;
    const T* rows[kMaxTaps];
    T weights[kMaxTaps];
    const int64_t count = taps_of(pair, token, rows_, rows, weights);
    if (count == 1 && weights[0] == 1) return rows[0];
    if (count == 0)
      std::fill_n(buffer, width, T(0));
    else
      ops_.combine(rows, weights, count, width, buffer);
    return buffer;
  }

  // Adds the gradient x of a pair's row to `gradient`, which has the layout of the rows.
  void add(int64_t pair, int64_t token, const T* x, T* gradient) const {
    if (!tapped) return ops_.add(x, width, gradient + token * width);
    T *rows[kMaxTaps], weights[kMaxTaps];
    const int64_t count = taps_of(pair, token, gradient, rows, weights);
    ops_.spread(x, weights, count, width, rows);
  }

  // d_phi[t] += rows[t] . x, also where phi is 0
  void add_phi(int64_t pair, int64_t token, const T* x, T* d_phi) const {
    for (int64_t t = 0; t < taps_; ++t) {
      const int64_t place = place_of(pair, token, t);
      if (place < 0) continue;
      const T* const row = rows_ + place * width;
      T dot;
      ops_.tap_dots(&row, x, 1, width, &dot);
      d_phi[t] += dot;
    }
  }

  const int64_t width;
  const bool tapped, shared;

 private:
  int64_t place_of(int64_t pair, int64_t token, int64_t tap) const {
    return places_[token * stride_ + slots_[pair * taps_ + tap]];
  }

  // The taps whose phi is not 0: a pair of a regular grid has one.
  template <typename Row>
  int64_t taps_of(int64_t pair, int64_t token, Row* base, Row** rows, T* weights) const {
    int64_t count = 0;
    for (int64_t t = 0; t < taps_; ++t) {
      const T phi = phi_[pair * taps_ + t];
      if (phi == 0) continue;
      const int64_t place = place_of(pair, token, t);
      if (place < 0) continue;
      rows[count] = base + place * width;
      weights[count++] = phi;
    }
    return count;
  }

  const kernels::RowOps<T>& ops_;
  const T* const rows_;
  const int64_t *places_ = nullptr, *slots_ = nullptr;
  const T* phi_ = nullptr;
  int64_t taps_ = 0, stride_ = 0;
};

template <typename T>
struct Buffers {
  explicit Buffers(int64_t width) : data(new T[2 * width]), width(width) {}
  T* operator[](int64_t which) { return data.get() + which * width; }
  std::unique_ptr<T[]> data;
  int64_t width;
};

// The gradient of phi, if it is needed. A pair adds to its own; each sum over the pairs visits a
// pair once.
template <typename T>
class PhiGradient {
 public:
  explicit PhiGradient(const at::Tensor& d_phi)
      : to_(d_phi.defined() ? d_phi.data_ptr<T>() : nullptr),
        taps_(d_phi.defined() ? d_phi.size(1) : 0) {}
  void add(const Rows<T>& rows, int64_t pair, int64_t token, const T* d_row) const {
    if (to_ && rows.tapped) rows.add_phi(pair, token, d_row, to_ + pair * taps_);
  }

 private:
  T* const to_;
  const int64_t taps_;
};

// The gradient of an encoding: adds d(pair, buffers) to the rows of each pair. The rows of a token
// are written by the pairs of that token, a list. Rows that all tokens share are summed in shards,
// whose number does not depend on that of threads.
template <typename T, typename Row>
at::Tensor sum_rows(const EncodedRows& encoding, const Rows<T>& rows, const Lists& lists,
                    const Row& d) {
  if (!rows.shared) {
    auto sums = large_zeros(encoding.rows.sizes(), encoding.rows.options());
    T* const to = sums.template data_ptr<T>();
    each_pair(lists, [&] {
      return [&, to, buffers = Buffers<T>(rows.width)](int64_t token, int64_t e) mutable {
        rows.add(e, token, d(e, buffers), to);
      };
    });
    return sums;
  }
  const int64_t numel = encoding.rows.numel();
  const Shards shards(lists.blocks(), numel);
  auto sums = at::zeros({shards.count, numel}, encoding.rows.options());
  T* const to = sums.template data_ptr<T>();
  parallel_each(shards.count, [&] {
    return [&, buffers = Buffers<T>(rows.width)](int64_t shard) mutable {
      const auto work = [&](int64_t token, int64_t e) {
        rows.add(e, token, d(e, buffers), to + shard * numel);
      };
      const int64_t end = std::min(lists.blocks(), (shard + 1) * shards.length);
      for (int64_t block = shard * shards.length; block < end; ++block)
        each_pair_of_block(lists, block, work);
    };
  });
  merge_shards(to, shards.count, numel);
  return sums[0].view(encoding.rows.sizes()).clone();
}

// The lists by which the gradient of rows read at the key is summed.
template <typename T>
const Lists& lists_for_key(const EncodedRows& encoding, const Rows<T>& rows, const PairList& pairs,
                           const Lists& by_query, Lists& by_key) {
  if (rows.shared) return by_query;
  by_key = lists_by_key(pairs, rows.tapped ? encoding.places.size(0) : encoding.rows.size(0));
  return by_key;
}

template <typename T>
void scores_into(const EncodedRows& q, const EncodedRows& k, const PairList& pairs, int64_t heads,
                 T* out) {
  const Rows<T> left(q, pairs), right(k, pairs);
  const int64_t* const key = numbers(pairs.key);
  const int64_t W = left.width;
  each_pair(lists_by_query(pairs.query, pairs.key), [&] {
    return [&, buffers = Buffers<T>(W)](int64_t i, int64_t e) mutable {
      const T* const q_row = left.row(e, i, buffers[0]);
      const T* const k_row = right.row(e, key[e], buffers[1]);
      kernels::row_ops<T>().heads.dots(q_row, k_row, 1, heads, W / heads, 1, out + e * heads);
    };
  });
}

template <typename T>
std::vector<at::Tensor> scores_gradients(const at::Tensor& d, const EncodedRows& q,
                                         const EncodedRows& k, const PairList& pairs,
                                         bool needs_phi) {
  const auto& ops = kernels::row_ops<T>();
  const Rows<T> left(q, pairs), right(k, pairs);
  const Lists by_query = lists_by_query(pairs.query, pairs.key);
  const int64_t *const query = numbers(pairs.query), *const key = numbers(pairs.key);
  const int64_t W = left.width, H = d.size(1);
  const T* const ds = d.data_ptr<T>();
  const auto scaled = [&](const T* row, int64_t e, T* out) {
    ops.heads.scale(ds + e * H, row, 1, H, W / H, 1, out);
    return out;
  };
  auto d_phi = needs_phi ? at::zeros_like(pairs.phi) : at::Tensor();
  const PhiGradient<T> phi(d_phi);
  const auto dq = sum_rows(q, left, by_query, [&](int64_t e, Buffers<T>& b) {
    const T* const d_row = scaled(right.row(e, key[e], b[0]), e, b[1]);
    phi.add(left, e, query[e], d_row);
    return d_row;
  });
  Lists by_key;
  const auto dk = sum_rows(k, right, lists_for_key(k, right, pairs, by_query, by_key),
                           [&](int64_t e, Buffers<T>& b) {
                             const T* const d_row = scaled(left.row(e, query[e], b[0]), e, b[1]);
                             phi.add(right, e, key[e], d_row);
                             return d_row;
                           });
  return {dq, dk, d_phi};
}

template <typename T>
void mix_into(const at::Tensor& weights, const EncodedRows& v, const PairList& pairs, T* out) {
  const Rows<T> right(v, pairs);
  const int64_t* const key = numbers(pairs.key);
  const T* const w = weights.data_ptr<T>();
  const int64_t W = right.width, H = weights.size(1);
  each_pair(lists_by_query(pairs.query, pairs.key), [&] {
    return [&, buffers = Buffers<T>(W)](int64_t i, int64_t e) mutable {
      kernels::row_ops<T>().heads.add_scaled(w + e * H, right.row(e, key[e], buffers[0]), 1, H,
                                             W / H, 1, out + i * W);
    };
  });
}

template <typename T>
std::vector<at::Tensor> mix_gradients(const at::Tensor& d, const at::Tensor& weights,
                                      const EncodedRows& v, const PairList& pairs, bool needs_phi) {
  const auto& ops = kernels::row_ops<T>();
  const Rows<T> right(v, pairs);
  const Lists by_query = lists_by_query(pairs.query, pairs.key);
  const int64_t *const query = numbers(pairs.query), *const key = numbers(pairs.key);
  const int64_t W = right.width, H = weights.size(1);
  const T *const d_out = d.data_ptr<T>(), *const w = weights.data_ptr<T>();
  const auto scaled = [&](int64_t e, T* out) {
    ops.heads.scale(w + e * H, d_out + query[e] * W, 1, H, W / H, 1, out);
    return out;
  };
  auto d_phi = needs_phi ? at::zeros_like(pairs.phi) : at::Tensor();
  const PhiGradient<T> phi(d_phi);
  Lists by_key;
  const auto dv = sum_rows(v, right, lists_for_key(v, right, pairs, by_query, by_key),
                           [&](int64_t e, Buffers<T>& b) {
                             const T* const d_row = scaled(e, b[0]);
                             phi.add(right, e, key[e], d_row);
                             return d_row;
                           });
  auto dw = at::empty_like(weights);
  T* const to = dw.data_ptr<T>();
  each_pair(by_query, [&] {
    return [&, b = Buffers<T>(W)](int64_t i, int64_t e) mutable {
      ops.heads.dots(d_out + i * W, right.row(e, key[e], b[0]), 1, H, W / H, 1, to + e * H);
    };
  });
  return {dw, dv, d_phi};
}

// Calls work(rows, count, scratch) for the pairs of each query, from their first element on.
template <typename T, typename Work>
void each_query(const at::Tensor& query, int64_t lanes, const Work& work) {
  const Lists lists = lists_by_query(query, query);
  parallel_each(lists.blocks(), [&] {
    return [&, scratch = std::vector<T>(2 * lanes)](int64_t block) mutable {
      const int64_t end = std::min(lists.count(), (block + 1) * kListBlock);
      for (int64_t l = block * kListBlock; l < end; ++l)
        work(lists.first[l] * lanes, lists.first[l + 1] - lists.first[l], scratch.data());
    };
  });
}

}  // namespace

at::Tensor pair_scores_fused(const EncodedRows& q, const EncodedRows& k, const PairList& pairs,
                             int64_t heads) {
  auto out = at::empty({pairs.query.numel(), heads}, q.rows.options());
  AT_DISPATCH_FLOATING_TYPES(q.rows.scalar_type(), "pair_scores", [&] {
    scores_into<scalar_t>(q, k, pairs, heads, out.data_ptr<scalar_t>());
  });
  return out;
}

std::vector<at::Tensor> pair_scores_gradients(const at::Tensor& d, const EncodedRows& q,
                                              const EncodedRows& k, const PairList& pairs,
                                              bool needs_phi) {
  std::vector<at::Tensor> found;
  AT_DISPATCH_FLOATING_TYPES(d.scalar_type(), "pair_scores", [&] {
    found = scores_gradients<scalar_t>(d, q, k, pairs, needs_phi);
  });
  return found;
}

at::Tensor pair_softmax_fused(const at::Tensor& scores, const at::Tensor& query, double scale) {
  auto out = scores * scale;
  AT_DISPATCH_FLOATING_TYPES(scores.scalar_type(), "pair_softmax", [&] {
    const int64_t H = scores.size(1);
    each_query<scalar_t>(query, H, [&](int64_t first, int64_t count, scalar_t* scratch) {
      const std::vector<char> open(count, 1);
      kernels::row_ops<scalar_t>().softmax_lanes(out.data_ptr<scalar_t>() + first, open.data(),
                                                 count, H, scratch);
    });
  });
  return out;
}

at::Tensor pair_softmax_gradient(const at::Tensor& d, const at::Tensor& weights,
                                 const at::Tensor& query, double scale) {
  auto out = d.clone(at::MemoryFormat::Contiguous);
  AT_DISPATCH_FLOATING_TYPES(weights.scalar_type(), "pair_softmax", [&] {
    const int64_t H = weights.size(1);
    each_query<scalar_t>(query, H, [&](int64_t first, int64_t count, scalar_t* scratch) {
      const auto& ops = kernels::row_ops<scalar_t>();
      const scalar_t* const p = weights.data_ptr<scalar_t>() + first;
      scalar_t* const dp = out.data_ptr<scalar_t>() + first;
      ops.lane_dots(p, dp, count, H, scratch);
      ops.softmax_lanes_backward(p, dp, count, H, static_cast<scalar_t>(scale), scratch);
    });
  });
  return out;
}

at::Tensor pair_mix_fused(const at::Tensor& weights, const EncodedRows& v, const PairList& pairs,
                          int64_t tokens) {
  auto out = at::zeros({tokens, v.rows.size(1)}, v.rows.options());
  AT_DISPATCH_FLOATING_TYPES(v.rows.scalar_type(), "pair_mix", [&] {
    mix_into<scalar_t>(weights, v, pairs, out.data_ptr<scalar_t>());
  });
  return out;
}

std::vector<at::Tensor> pair_mix_gradients(const at::Tensor& d, const at::Tensor& weights,
                                           const EncodedRows& v, const PairList& pairs,
                                           bool needs_phi) {
  std::vector<at::Tensor> found;
  AT_DISPATCH_FLOATING_TYPES(v.rows.scalar_type(), "pair_mix", [&] {
    found = mix_gradients<scalar_t>(d, weights, v, pairs, needs_phi);
  });
  return found;
}

}  // namespace translution
