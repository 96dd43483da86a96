#include "translution/ops/lookahead.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <algorithm>
#include <cmath>

#include "translution/kernels/bf16.h"
#include "translution/kernels/gemm.h"
#include "translution/kernels/scratch.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"
#include "translution/ops/rounding.h"

namespace translution {
namespace {

using kernels::gemm;

// Queries of a block, and of a group within it. After 160 tokens, a new token reads
// 160 / 32 + (32 / 2 + 4) / 4 + (4 + 1) / 2 = 12.5 matrices per role on average. Larger blocks cost
// memory: 32 * N * (heads * C + width) numbers.
constexpr int64_t kQueryBlock = 32, kGroup = 4;

kernels::Bf16* bf16_data(const at::Tensor& x) { return static_cast<kernels::Bf16*>(x.data_ptr()); }

at::Tensor operand(const at::Tensor& weight, bool bf16) {
  const auto plain = weight.detach();
  return (bf16 ? to_bf16(plain) : plain).contiguous();
}

}  // namespace

Lookahead::Lookahead(const RoleWeights& weights, std::shared_ptr<const OffsetTable> offsets,
                     int64_t heads, Precision precision)
    : offsets_(std::move(offsets)), heads_(heads), bf16_(multiplies_bf16(precision, weights.q)) {
  weights_ = {operand(weights.q, bf16_), operand(weights.k, bf16_), operand(weights.v, bf16_)};
}

at::Tensor Lookahead::gather(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  const bool bias_rows = weights_.q.size(1) == x.size(1) + 1;
  const auto features = operand(bias_rows ? with_constant(x) : x, bf16_);
  const int64_t n = features.size(0), query = n - 1;
  if (known_ != query || query >= first_ + ahead_) begin_block(features, query);
  const int64_t group = first_ + (query - first_) / kGroup * kGroup, next = group + kGroup;
  contribute(features, {query, n}, {query, std::min(next, first_ + ahead_)});
  if (n == next) contribute(features, {group, n}, {n, first_ + ahead_});
  known_ = n;
  return (bf16_ ? gather_prepared_bf16(features) : gather_prepared(features)).to(x.scalar_type());
}

// The output of the last token, from all contributions to it.
at::Tensor Lookahead::gather_prepared(const at::Tensor& x) const {
  const int64_t n = x.size(0), query = n - 1, D = values_.size(2) / heads_;
  const auto scorers = scorers_[query - first_].narrow(1, 0, n);  // [H,n,C]
  const auto values = values_[query - first_].narrow(0, 0, n);    // [n,H*D]
  const auto scores = at::matmul(scorers, x[query]) / std::sqrt(static_cast<double>(D));
  return at::bmm(scores.softmax(-1).unsqueeze(1),  // [H,1,n]
                 values.view({n, heads_, D}).transpose(0, 1))
      .flatten();  // [H,n,D]
}

at::Tensor Lookahead::gather_prepared_bf16(const at::Tensor& x) const {
  const int64_t n = x.size(0), C = x.size(1), query = n - 1, F = values_.size(2);
  const auto scorers = scorers_[query - first_];  // [H,tokens,C]
  const auto values = values_[query - first_];    // [tokens,H*D]
  auto scores = at::empty({heads_, n}, x.options().dtype(at::kFloat));
  auto out = at::zeros({F}, scores.options());
  parallel_each(heads_, [&] {
    return [&, products = std::make_shared<kernels::Bf16Products>()](int64_t h) {
      products->multiply(1, bf16_data(x) + query * C, C,
                         kernels::RowMatrix{bf16_data(scorers) + h * scorers.stride(0), C, C, n,
                                            /*transposed=*/true},
                         false, scores.data_ptr<float>() + h * n, n);
    };
  });
  const int64_t D = F / heads_;
  const auto weights = scores.div_(std::sqrt(static_cast<double>(D))).softmax(-1).t().contiguous();
  for (int64_t j = 0; j < n; ++j)
    kernels::bf16_row_ops().heads.add_scaled(weights.data_ptr<float>() + j * heads_,
                                             bf16_data(values) + j * F, 1, heads_, D,
                                             out.data_ptr<float>());
  return out;
}

// Begins a block at query `known`, with the contributions of all tokens before it.
void Lookahead::begin_block(const at::Tensor& x, int64_t known) {
  first_ = known;
  ahead_ = std::min(kQueryBlock, offsets_->num_tokens() - first_);
  const int64_t tokens = first_ + ahead_;
  scorers_ = large_empty({ahead_, heads_, tokens, x.size(1)}, x.options());
  values_ = large_empty({ahead_, tokens, weights_.v.size(2)}, x.options());
  contribute(x, {0, known}, {first_, tokens});
}

void Lookahead::contribute(const at::Tensor& x, Range tokens, Range queries) {
  if (bf16_) return contribute_spans_bf16(x, spans(tokens, queries));
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "lookahead",
                             [&] { contribute_spans<scalar_t>(x, spans(tokens, queries)); });
}

// The pairs of these tokens and queries as spans along the diagonals, where consecutive queries
// attend to consecutive tokens.
std::vector<PairSpan> Lookahead::spans(Range tokens, Range queries) const {
  std::vector<PairSpan> found;
  const int64_t least = std::max<int64_t>(0, queries.begin - tokens.end + 1);
  for (int64_t delta = least; delta < queries.end - tokens.begin; ++delta) {
    const int64_t end = std::min(queries.end, tokens.end + delta);
    for (int64_t i = std::max(queries.begin, tokens.begin + delta); i < end; ++i) {
      const int64_t j = i - delta, slot = offsets_->slot(i, j);
      const bool extends_last = !found.empty() && found.back().slot == slot &&
                                found.back().i + found.back().length == i &&
                                found.back().j + found.back().length == j;
      if (extends_last)
        ++found.back().length;
      else
        found.push_back({slot, offsets_->key_slot(i, j), i, j, 1, 1, 1});
    }
  }
  return found;
}

// The contributions of a span lie on a diagonal of scorers_ and values_, at a fixed stride, so
// products write them in place.
template <typename T>
void Lookahead::contribute_spans(const at::Tensor& x, const std::vector<PairSpan>& spans) {
  const int64_t C = x.size(1), E = weights_.q.size(2), D = E / heads_, F = weights_.v.size(2);
  const int64_t tokens = first_ + ahead_;
  const T* features = x.data_ptr<T>();
  const T *wq = weights_.q.data_ptr<T>(), *wk = weights_.k.data_ptr<T>(),
          *wv = weights_.v.data_ptr<T>();
  T *scorers = scorers_.data_ptr<T>(), *values = values_.data_ptr<T>();
  parallel_each(static_cast<int64_t>(spans.size()), [&] {
    return [&, keys = std::vector<T>(kQueryBlock * E)](int64_t r) mutable {
      const PairSpan& span = spans[r];
      const T* x_j = features + span.j * C;
      const int64_t query = span.i - first_;
      gemm<T>(false, false, span.length, E, C, x_j, C, wk + span.key_slot * C * E, E, 0,
              keys.data(), E);
      for (int64_t h = 0; h < heads_; ++h)
        gemm<T>(false, true, span.length, C, D, keys.data() + h * D, E,
                wq + span.slot * C * E + h * D, E, 0,
                scorers + ((query * heads_ + h) * tokens + span.j) * C, (heads_ * tokens + 1) * C);
      gemm<T>(false, false, span.length, F, C, x_j, C, wv + span.slot * C * F, F, 0,
              values + (query * tokens + span.j) * F, (tokens + 1) * F);
    };
  });
}

// The same in bfloat16: products go to a float32 buffer, from which they are rounded into place.
void Lookahead::contribute_spans_bf16(const at::Tensor& x, const std::vector<PairSpan>& spans) {
  using kernels::Bf16;
  const int64_t C = x.size(1), E = weights_.q.size(2), D = E / heads_, F = weights_.v.size(2);
  const int64_t tokens = first_ + ahead_;
  const Bf16* features = bf16_data(x);
  const Bf16 *wq = bf16_data(weights_.q), *wk = bf16_data(weights_.k), *wv = bf16_data(weights_.v);
  Bf16 *scorers = bf16_data(scorers_), *values = bf16_data(values_);
  const auto& ops = kernels::bf16_row_ops();
  struct Scratch {
    kernels::Bf16Products products;
    kernels::Scratch<float> sums;
    kernels::Scratch<Bf16> keys;
  };
  parallel_each(static_cast<int64_t>(spans.size()), [&] {
    return [&, scratch = std::make_shared<Scratch>()](int64_t r) {
      const PairSpan& span = spans[r];
      const Bf16* x_j = features + span.j * C;
      const int64_t query = span.i - first_, length = span.length;
      float* const sums = scratch->sums.with(kQueryBlock * std::max({heads_ * C, E, F}));
      Bf16* const keys = scratch->keys.with(kQueryBlock * E);
      auto& products = scratch->products;
      products.multiply(length, x_j, C,
                        kernels::RowMatrix{wk + span.key_slot * C * E, E, C, E, false}, false, sums,
                        E);
      ops.round(sums, length * E, keys);
      products.multiply_heads(length, heads_, C, D, keys, E, wq + span.slot * C * E, E, sums,
                              heads_ * C);
      for (int64_t t = 0; t < length; ++t)
        for (int64_t h = 0; h < heads_; ++h)
          ops.round(sums + (t * heads_ + h) * C, C,
                    scorers + (((query + t) * heads_ + h) * tokens + span.j + t) * C);
      products.multiply(length, x_j, C, kernels::RowMatrix{wv + span.slot * C * F, F, C, F, false},
                        false, sums, F);
      for (int64_t t = 0; t < length; ++t)
        ops.round(sums + t * F, F, values + ((query + t) * tokens + span.j + t) * F);
    };
  });
}

}  // namespace translution
