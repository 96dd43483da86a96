#include "translution/ops/pair_list_portable.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int64_t kPieceNumbers = 1 << 20;  // of a tensor with a row for each pair of a piece

// The rows that pairs read.
class PortableRows {
 public:
  PortableRows(const EncodedRows& encoding, const at::Tensor& token, const PairList& pairs)
      : rows_(encoding.rows), tapped_(encoding.places.defined()) {
    if (!tapped_) {
      index_ = {token};
      return;
    }
    const auto& places = encoding.places;
    const auto first = places.size(0) == 1 ? at::zeros_like(token) : token * places.size(1);
    for (int64_t t = 0; t < pairs.slots.size(1); ++t) {
      const auto at = places.flatten().index_select(0, first + pairs.slots.select(1, t));
      index_.push_back(at.clamp_min(0));
      known_.push_back(at.ge(0).to(rows_.scalar_type()).unsqueeze(1));
      phi_.push_back(pairs.phi.select(1, t).unsqueeze(1) * known_.back());
    }
  }

  at::Tensor row() const {
    auto sum = tap(0);
    if (tapped_) sum = sum * phi_[0];
    for (size_t t = 1; t < index_.size(); ++t) sum = sum + tap(t) * phi_[t];
    return sum;
  }

  void add(const at::Tensor& d, at::Tensor& gradient) const {
    for (size_t t = 0; t < index_.size(); ++t)
      gradient.index_add_(0, index_[t], tapped_ ? d * phi_[t] : d);
  }

  void add_phi(const at::Tensor& d, at::Tensor d_phi) const {
    if (!tapped_) return;
    for (size_t t = 0; t < index_.size(); ++t)
      d_phi.select(1, t).add_((tap(t) * known_[t] * d).sum(1));
  }

 private:
  at::Tensor tap(size_t t) const { return rows_.index_select(0, index_[t]); }

  const at::Tensor rows_;
  const bool tapped_;
  Tensors index_, phi_, known_;
};

// Calls work(begin, pairs) for pieces of the pairs, so that no tensor has the size of all.
template <typename Work>
void in_pieces(const PairList& pairs, int64_t width, const Work& work) {
  const int64_t count = pairs.query.size(0),
                length = std::max<int64_t>(1, kPieceNumbers / std::max<int64_t>(1, width));
  for (int64_t begin = 0; begin < count; begin += length) {
    const auto part = [&](const at::Tensor& t) {
      return t.defined() ? t.slice(0, begin, std::min(count, begin + length)) : t;
    };
    work(begin, PairList{part(pairs.query), part(pairs.key), part(pairs.slots), part(pairs.phi)});
  }
}

at::Tensor by_head(const at::Tensor& rows, int64_t heads) {
  return rows.view({rows.size(0), heads, -1});
}

at::Tensor scale_heads(const at::Tensor& rows, const at::Tensor& weights) {
  return (by_head(rows, weights.size(1)) * weights.unsqueeze(2)).flatten(1);
}

at::Tensor zeros_of(const at::Tensor& x) { return at::zeros(x.sizes(), x.options()); }

// Sums over the pairs of each query, as rows of the pairs.
at::Tensor sum_by_query(const at::Tensor& x, const at::Tensor& query, int64_t tokens) {
  return at::zeros({tokens, x.size(1)}, x.options()).index_add(0, query, x).index_select(0, query);
}

// The highest score of each query, [tokens,heads], by way of a row for each query. LibTorch 1.13
// prints a warning for scatter_reduce.
at::Tensor highest_by_query(const at::Tensor& scores, const at::Tensor& query, int64_t tokens) {
  const auto counts = query.bincount({}, tokens), first = counts.cumsum(0) - counts;
  const auto number = at::arange(query.size(0), query.options()) - first.index_select(0, query);
  return at::full({tokens, counts.max().item<int64_t>(), scores.size(1)},
                  -std::numeric_limits<double>::infinity(), scores.options())
      .index_put({query, number}, scores)
      .amax(1);
}

}  // namespace

at::Tensor pair_scores_portable(const EncodedRows& q, const EncodedRows& k, const PairList& pairs,
                                int64_t heads) {
  Tensors parts = {at::empty({0, heads}, q.rows.options())};
  in_pieces(pairs, q.rows.size(1), [&](int64_t, const PairList& part) {
    const auto left = PortableRows(q, part.query, part).row();
    const auto right = PortableRows(k, part.key, part).row();
    parts.push_back((by_head(left, heads) * by_head(right, heads)).sum(2));
  });
  return at::cat(parts);
}

Tensors pair_scores_gradients_portable(const at::Tensor& d, const EncodedRows& q,
                                       const EncodedRows& k, const PairList& pairs,
                                       bool needs_phi) {
  auto dq = zeros_of(q.rows), dk = zeros_of(k.rows);
  auto d_phi = needs_phi ? zeros_of(pairs.phi) : at::Tensor();
  in_pieces(pairs, q.rows.size(1), [&](int64_t begin, const PairList& part) {
    const int64_t end = begin + part.query.size(0);
    const PortableRows left(q, part.query, part), right(k, part.key, part);
    const auto weights = d.slice(0, begin, end);
    const auto d_left = scale_heads(right.row(), weights),
               d_right = scale_heads(left.row(), weights);
    left.add(d_left, dq);
    right.add(d_right, dk);
    if (!needs_phi) return;
    left.add_phi(d_left, d_phi.slice(0, begin, end));
    right.add_phi(d_right, d_phi.slice(0, begin, end));
  });
  return {dq, dk, d_phi};
}

at::Tensor pair_softmax_portable(const at::Tensor& scores, const at::Tensor& query, int64_t tokens,
                                 double scale) {
  const auto scaled = scores * scale;
  if (query.size(0) == 0) return scaled;
  // Does not change the result.
  const auto highest = highest_by_query(scaled.detach(), query, tokens);
  const auto exponents = (scaled - highest.index_select(0, query)).exp();
  return exponents / sum_by_query(exponents, query, tokens);
}

at::Tensor pair_softmax_gradient_portable(const at::Tensor& d, const at::Tensor& weights,
                                          const at::Tensor& query, int64_t tokens, double scale) {
  return weights * (d - sum_by_query(weights * d, query, tokens)) * scale;
}

at::Tensor pair_mix_portable(const at::Tensor& weights, const EncodedRows& v, const PairList& pairs,
                             int64_t tokens) {
  auto out = at::zeros({tokens, v.rows.size(1)}, v.rows.options());
  in_pieces(pairs, v.rows.size(1), [&](int64_t begin, const PairList& part) {
    const auto w = weights.slice(0, begin, begin + part.query.size(0));
    out = out.index_add(0, part.query, scale_heads(PortableRows(v, part.key, part).row(), w));
  });
  return out;
}

Tensors pair_mix_gradients_portable(const at::Tensor& d, const at::Tensor& weights,
                                    const EncodedRows& v, const PairList& pairs, bool needs_phi) {
  auto dv = zeros_of(v.rows);
  Tensors d_weights = {at::empty({0, weights.size(1)}, v.rows.options())};
  auto d_phi = needs_phi ? zeros_of(pairs.phi) : at::Tensor();
  in_pieces(pairs, v.rows.size(1), [&](int64_t begin, const PairList& part) {
    const int64_t end = begin + part.query.size(0), H = weights.size(1);
    const PortableRows right(v, part.key, part);
    const auto d_rows = d.index_select(0, part.query);
    d_weights.push_back((by_head(d_rows, H) * by_head(right.row(), H)).sum(2));
    const auto d_right = scale_heads(d_rows, weights.slice(0, begin, end));
    right.add(d_right, dv);
    if (needs_phi) right.add_phi(d_right, d_phi.slice(0, begin, end));
  });
  return {at::cat(d_weights), dv, d_phi};
}

}  // namespace translution
