#include "tests/support/rounded_oracle.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace translution::rounded_oracle {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor to_bfloat16_and_back(const at::Tensor& x) {
  return x.to(at::kBFloat16).to(x.scalar_type());
}

// Rounds the value in forward, the gradient in backward, or both.
class Round : public torch::autograd::Function<Round> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, bool value, bool gradient) {
    ctx->saved_data["gradient"] = gradient;
    return value ? to_bfloat16_and_back(x) : x.clone();
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d) {
    const bool rounds = ctx->saved_data["gradient"].toBool();
    return {rounds ? to_bfloat16_and_back(d[0]) : d[0], {}, {}};
  }
};

at::Tensor round_value(const at::Tensor& x, Rounding rounding) {
  return rounding == Rounding::bf16 ? Round::apply(x, true, false) : x;
}
at::Tensor round_gradient(const at::Tensor& x, Rounding rounding) {
  return rounding == Rounding::bf16 ? Round::apply(x, false, true) : x;
}
at::Tensor round_both(const at::Tensor& x, Rounding rounding) {
  return rounding == Rounding::bf16 ? Round::apply(x, true, true) : x;
}

at::Tensor indices(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

at::Tensor split_heads(const at::Tensor& x, int64_t heads) {  // [B,n,E] -> [B,H,n,D]
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

at::Tensor join_heads(const at::Tensor& x) {  // [B,H,n,D] -> [B,n,E]
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

at::Tensor rows_by_head(const at::Tensor& x, int64_t heads) {  // [P,B,E] -> [P,B,H,D]
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads});
}

// The pairs of a call, one by one. Query row r is token i = rows[r].
class PairList {
 public:
  PairList(const Call& call, int64_t batch)
      : tokens(call.pairing.tokens), rows(call.rows), batch_(batch), heads_(call.heads) {
    if (rows.empty()) {
      rows.resize(tokens);
      std::iota(rows.begin(), rows.end(), 0);
    }
    std::vector<int64_t> flat;
    for (int64_t r = 0; r < queries(); ++r)
      for (int64_t j = 0; j < tokens; ++j) {
        const int64_t i = rows[r], cell = i * tokens + j;
        if (call.pairing.slot[cell] < 0 || (call.causal && j > i)) continue;
        row.push_back(r), key.push_back(j);
        slot.push_back(call.pairing.slot[cell]), key_slot.push_back(call.pairing.key_slot[cell]);
        flat.push_back(r * tokens + j);
      }
    index_ = indices(flat);
    closed_ = at::ones({queries() * tokens}, at::kBool).index_fill_(0, index_, 0);
    closed_ = closed_.view({queries(), tokens});
    if (call.mask.defined())
      closed_ = closed_.logical_or(call.mask.logical_not().view({batch, 1, 1, tokens}));
  }

  int64_t queries() const { return static_cast<int64_t>(rows.size()); }

  // [P,A,H] -> [A,H,Nq,N]; zero where there is no pair
  at::Tensor scatter(const at::Tensor& values) const {
    return at::zeros({queries() * tokens, values.size(1), values.size(2)}, values.options())
        .index_copy(0, index_, values)
        .view({queries(), tokens, values.size(1), values.size(2)})
        .permute({2, 3, 0, 1});
  }

  // [A,H,Nq,N] -> [P,A,H]
  at::Tensor gather(const at::Tensor& dense) const {
    return dense.permute({2, 3, 0, 1})
        .reshape({queries() * tokens, dense.size(0), dense.size(1)})
        .index_select(0, index_);
  }

  at::Tensor softmax(const at::Tensor& scores) const {
    constexpr double kClosed = -1e30;  // finite, because -infinity gives NaN in rows without pairs
    return at::softmax(scores.masked_fill(closed_, kClosed), -1).masked_fill(closed_, 0);
  }

  // The sum of the values [P,B,E] of the pairs, weighted per head by [B,H,Nq,N]: [B,Nq,E]
  at::Tensor sum(const at::Tensor& weights, const at::Tensor& values) const {
    const auto parts = gather(weights).unsqueeze(-1) * rows_by_head(values, heads_);  // [P,B,H,D]
    return at::zeros({queries(), batch_, values.size(2)}, parts.options())
        .index_add(0, indices(row), parts.reshape({parts.size(0), batch_, values.size(2)}))
        .transpose(0, 1);
  }

  const int64_t tokens;
  std::vector<int64_t> rows;                      // [Nq]
  std::vector<int64_t> row, key, slot, key_slot;  // [P]

 private:
  const int64_t batch_, heads_;
  at::Tensor index_, closed_;
};

// The encoding of each pair: [P,B,R], or [P,1,R] for vectors. Pairs with the same table row and
// token share an encoding.
at::Tensor encode(const at::Tensor& x, const at::Tensor& table, const std::vector<int64_t>& slots,
                  const std::vector<int64_t>& tokens, Rounding rounding) {
  if (!x.defined()) return table.index_select(0, indices(slots)).unsqueeze(1);
  std::vector<std::pair<int64_t, int64_t>> distinct;
  for (size_t p = 0; p < slots.size(); ++p) distinct.emplace_back(slots[p], tokens[p]);
  const auto expected = distinct;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<int64_t> inverse, slot_tokens;
  for (const auto& pair : expected)
    inverse.push_back(std::lower_bound(distinct.begin(), distinct.end(), pair) - distinct.begin());

  const auto features = x.transpose(0, 1);  // [N,B,C]
  std::vector<at::Tensor> matrices;
  if (table.defined()) matrices = table.unbind(0);
  std::vector<at::Tensor> encodings;
  for (size_t u = 0; u < distinct.size(); ++u) {
    slot_tokens.push_back(distinct[u].second);
    if (u + 1 < distinct.size() && distinct[u + 1].first == distinct[u].first) continue;
    const auto rows = features.index_select(0, indices(slot_tokens));
    encodings.push_back(table.defined() ? product(rows, matrices[distinct[u].first], rounding)
                                        : rows);
    slot_tokens.clear();
  }
  if (encodings.empty())
    return at::zeros({0, x.size(0), (table.defined() ? table : x).size(2)}, x.options());
  return round_both(at::cat(encodings), rounding).index_select(0, indices(inverse));
}

// Rotates channel d of a head against channel d + D/2, by the angles of oracle::rotary.
at::Tensor rotate(const at::Tensor& x, const std::vector<int64_t>& tokens, const Call& call) {
  const auto& grid = call.rotary_grid;
  if (grid.empty()) return x;
  const int64_t half = x.size(2) / call.heads / 2, count = static_cast<int64_t>(tokens.size());
  const int64_t frequencies = half / static_cast<int64_t>(grid.size());
  auto angles = at::zeros({count, half}, at::kDouble);
  for (int64_t t = 0; t < count; ++t) {
    if (call.rotary_cls && tokens[t] == 0) continue;
    int64_t position = tokens[t] - (call.rotary_cls ? 1 : 0);
    for (auto axis = static_cast<int64_t>(grid.size()); axis-- > 0; position /= grid[axis])
      for (int64_t f = 0; f < frequencies; ++f)
        angles[t][axis * frequencies + f] =
            std::pow(10000.0, -static_cast<double>(f) / static_cast<double>(frequencies)) *
            static_cast<double>(position % grid[axis]);
  }
  const auto cos = angles.cos().to(x.scalar_type()), sin = angles.sin().to(x.scalar_type());
  const auto heads = split_heads(x, call.heads);  // [B,H,n,D]
  const auto real = heads.narrow(3, 0, half), imaginary = heads.narrow(3, half, half);
  return join_heads(at::cat({real * cos - imaginary * sin, real * sin + imaginary * cos}, 3));
}

double inverse_root(int64_t width, int64_t heads) {
  return 1 / std::sqrt(static_cast<double>(width) / static_cast<double>(heads));
}

std::vector<int64_t> all_tokens(const at::Tensor& x) {
  std::vector<int64_t> tokens(x.size(1));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

std::vector<int64_t> query_tokens(const at::Tensor& x, const Call& call) {
  return call.rows.empty() ? all_tokens(x) : call.rows;
}

at::Tensor queries_of(const at::Tensor& x, const Call& call) {
  return call.rows.empty() ? x : x.index_select(1, indices(call.rows));
}

}  // namespace

at::Tensor product(const at::Tensor& x, const at::Tensor& weight, Rounding rounding,
                   const at::Tensor& bias) {
  const auto y =
      round_gradient(at::matmul(round_value(x, rounding), round_value(weight, rounding)), rounding);
  return bias.defined() ? y + bias : y;
}

Attended attention(const AttentionTerms& t, double scale, const Call& call, Rounding rounding) {
  int64_t batch = 0;
  for (const auto* x : {&t.q, &t.v, &t.rel_q, &t.rel_k, &t.rel_v})
    if (x->defined()) batch = x->size(0);
  const PairList pairs(call, batch);
  const int64_t H = call.heads;

  at::Tensor scores;  // [B,H,Nq,N]
  if (t.q.defined())
    scores = round_gradient(at::matmul(split_heads(round_value(t.q, rounding), H),
                                       split_heads(round_value(t.k, rounding), H).transpose(2, 3)) *
                                scale,
                            rounding);
  if (t.rel_q.defined() || t.table_q.defined()) {
    const auto q = encode(t.rel_q, t.table_q, pairs.slot, pairs.row, rounding);
    const auto k = encode(t.rel_k, t.table_k, t.rel_k.defined() ? pairs.key_slot : pairs.slot,
                          pairs.key, rounding);
    const auto relative = pairs.scatter(rows_by_head(q * k, H).sum(-1) * scale);
    scores = scores.defined() ? scores + relative : relative;
  }
  if (t.bias.defined())
    scores = scores + pairs.scatter(t.bias.index_select(0, indices(pairs.slot)).unsqueeze(1));

  auto map = pairs.softmax(scores);
  if (t.gate.defined()) {
    const auto g = at::sigmoid(t.gate).view({1, H, 1, 1});
    const auto positional =
        pairs.softmax(pairs.scatter(t.position.index_select(0, indices(pairs.slot)).unsqueeze(1)));
    map = (1 - g) * map + g * positional;
  }
  map =
      map.expand({batch, -1, -1, -1});  // all samples have one map if scores come from vectors only

  Attended result;
  result.map = map;
  const auto weights = call.keep.defined() ? map * call.keep : map;
  if (t.v.defined())
    result.out = join_heads(round_gradient(
        at::matmul(round_value(weights, rounding), split_heads(round_value(t.v, rounding), H)),
        rounding));
  if (t.rel_v.defined() || t.table_v.defined())
    result.relative_out =
        pairs.sum(weights, encode(t.rel_v, t.table_v, pairs.slot, pairs.key, rounding));
  return result;
}

MethodResult translution(const at::Tensor& x, const RoleWeights& w, const Call& call,
                         Rounding rounding) {
  const bool relative_scores = w.q.dim() == 3 || w.k.dim() == 3, relative_values = w.v.dim() == 3;
  // Returns features and sets the table for a relative role; otherwise returns the product.
  const auto side = [&](const at::Tensor& features, const at::Tensor& weight, at::Tensor& table) {
    if (weight.dim() == 2) return product(features, weight, rounding);
    table = weight;
    return features;
  };
  AttentionTerms t;
  const auto q = side(queries_of(x, call), w.q, t.table_q), k = side(x, w.k, t.table_k);
  if (relative_scores)
    t.rel_q = q, t.rel_k = k;
  else
    t.q = rotate(q, query_tokens(x, call), call), t.k = rotate(k, all_tokens(x), call);
  (relative_values ? t.rel_v : t.v) = side(x, w.v, t.table_v);
  const auto attended = attention(t, inverse_root(w.v.size(-1), call.heads), call, rounding);
  return {relative_values ? attended.relative_out : attended.out, attended.map};
}

MethodResult alpha_translution(const at::Tensor& x, const AlphaWeights& w, const Call& call,
                               Mixing mixing, Rounding rounding) {
  const bool shared = w.shared.v.defined();
  const bool relative_scores = w.table.q.defined() || w.table.k.defined();
  const bool small_scores = !shared || relative_scores;
  const bool small_values = !shared || w.table.v.defined();
  const auto queries = queries_of(x, call);
  AttentionTerms t;
  if (shared) {
    t.q = rotate(product(queries, w.shared.q, rounding), query_tokens(x, call), call);
    t.k = rotate(product(x, w.shared.k, rounding), all_tokens(x), call);
    t.v = product(x, w.shared.v, rounding);
  }
  if (small_scores) {
    (relative_scores ? t.rel_q : t.q) = product(queries, w.down.q, rounding);
    (relative_scores ? t.rel_k : t.k) = product(x, w.down.k, rounding);
    t.table_q = w.table.q, t.table_k = w.table.k;
  }
  if (small_values) {
    (w.table.v.defined() ? t.rel_v : t.v) = product(x, w.down.v, rounding);
    t.table_v = w.table.v;
  }
  const int64_t width = (shared ? w.shared.v : w.up).size(-1);
  const bool mean = shared && mixing == Mixing::mean;
  const auto attended = attention(
      t, inverse_root(width, call.heads) * (mean && small_scores ? 0.5 : 1.0), call, rounding);
  if (!small_values) return {attended.out, attended.map};
  const auto expanded =
      product(w.table.v.defined() ? attended.relative_out : attended.out, w.up, rounding);
  if (!shared) return {expanded, attended.map};
  return {(attended.out + expanded) * (mean ? 0.5 : 1.0), attended.map};
}

MethodResult self_attention(const at::Tensor& x, const RoleWeights& w,
                            const PositionTerms& position, const Call& call, Rounding rounding) {
  AttentionTerms t;
  const auto q = product(queries_of(x, call), w.q, rounding, position.biases.q);
  const auto k = product(x, w.k, rounding, position.biases.k);
  t.q = rotate(q, query_tokens(x, call), call);
  t.k = rotate(k, all_tokens(x), call);
  t.v = product(x, w.v, rounding, position.biases.v);
  if (position.key_vectors.defined()) t.rel_q = q, t.table_k = position.key_vectors;
  t.table_v = position.value_vectors;
  t.bias = position.bias;
  t.position = position.position, t.gate = position.gate;
  const auto attended = attention(t, inverse_root(w.v.size(-1), call.heads), call, rounding);
  return {t.table_v.defined() ? attended.out + attended.relative_out : attended.out, attended.map};
}

MethodResult convolution(const at::Tensor& x, const at::Tensor& weight, const Call& call,
                         Rounding rounding) {
  const PairList pairs(call, x.size(0));
  const auto count = static_cast<int64_t>(pairs.slot.size());
  const auto ones = pairs.scatter(at::ones({count, x.size(0), call.heads}, x.options()));
  return {pairs.sum(ones, encode(x, weight, pairs.slot, pairs.key, rounding)), ones};
}

}  // namespace translution::rounded_oracle
