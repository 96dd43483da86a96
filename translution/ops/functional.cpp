#include "translution/ops/functional.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <cmath>
#include <string>

#include "translution/ops/attention_portable.h"
#include "translution/ops/check.h"
#include "translution/ops/compat.h"
#include "translution/ops/project.h"
#include "translution/ops/rotary.h"
#include "translution/ops/runs.h"

namespace translution {
namespace {

at::Tensor take_rows(const at::Tensor& x, const at::Tensor& rows) {  // [B,N,C] -> [B,Nq,C]
  // LibTorch 1.13 has no index_select on Meta, where any rows have the right shape.
  if (x.is_meta()) return x.narrow(1, 0, 1).expand({x.size(0), rows.size(0), x.size(2)});
  return x.index_select(1, rows.to(x.device()));
}

struct Call {
  const CallOptions& options;
  Checker check;
  at::Tensor x;        // [B,N,C]
  at::Tensor queries;  // the rows of x asked for

  Call(const char* op, const at::Tensor& x, const CallOptions& options)
      : options(options), check(op), x(x) {
    TORCH_CHECK(options.heads > 0, op, ": wanted one or more heads, got ", options.heads);
    TORCH_CHECK(options.dropout >= 0 && options.dropout < 1, op,
                ": wanted a dropout probability in [0, 1), got ", options.dropout);
    check.tensor("x", x, 3, "[B, N, C]");
    TORCH_CHECK(x.size(1) > 0, op, ": wanted one or more tokens, x is ", x.sizes());
    if (options.rows.defined()) check_rows(op, options.rows, x.size(1));
    if (options.runs.defined())
      check_runs(op, options.runs, {x.size(1), x.size(1), std::numeric_limits<int64_t>::max()});
    queries = options.rows.defined() ? take_rows(x, options.rows) : x;
  }

  // A shared weight [C, width].
  void shared(const char* name, const at::Tensor& weight, int64_t width) {
    check.tensor(name, weight, 2, "[C, width]");
    check.size(name, weight, 0, x.size(2), "the channels of x");
    check.splits(name, weight, options.heads);
    if (width > 0) check.size(name, weight, 1, width, "the width of the other roles");
  }

  // A table of matrices [slots, in, out].
  void table(const char* name, const at::Tensor& weight, int64_t in, int64_t out) {
    check.tensor(name, weight, 3, "[slots, in, out], one matrix per slot");
    check.size(name, weight, 1, in, "the channels that it multiplies");
    check.size(name, weight, 2, out, "the width of the other roles");
    check.splits(name, weight, options.heads);
  }

  // Features times each weight, into `out`: of the query rows, and of all tokens.
  struct Projection {
    at::Tensor weight;
    at::Tensor* out;
    at::Tensor bias = {};
  };

  void project_all(std::vector<Projection> of_queries, std::vector<Projection> of_tokens) const {
    if (!options.rows.defined()) {
      of_tokens.insert(of_tokens.end(), of_queries.begin(), of_queries.end());
      of_queries.clear();
    }
    project_rows(queries, of_queries);
    project_rows(x, of_tokens);
  }

  static void project_rows(const at::Tensor& rows, const std::vector<Projection>& projections) {
    if (projections.empty()) return;
    std::vector<at::Tensor> weights, biases;
    for (const auto& projection : projections) {
      weights.push_back(projection.weight);
      if (projection.bias.defined()) biases.push_back(projection.bias);
    }
    const auto products = translution::project(rows, weights, biases);
    for (size_t p = 0; p < products.size(); ++p) *projections[p].out = products[p];
  }

  at::Tensor rotate(const at::Tensor& q, bool at_rows) const {
    if (!options.angles.defined()) return q;
    TORCH_CHECK(options.angles.dim() == 2 && options.angles.size(0) == x.size(1), check.op(),
                ": rotary angles must be [", x.size(1), ", D / 2], one row per token of x, got ",
                options.angles.sizes());
    const bool select = at_rows && options.rows.defined();
    return rotary(q,
                  select ? options.angles.index_select(0, options.rows.to(options.angles.device()))
                         : options.angles,
                  options.heads);
  }

  AttentionResult attend(const AttentionTerms& terms, double scale) const {
    AttentionSetting setting;
    setting.runs = select_rows(options.runs, options.rows);
    setting.rows = options.rows;
    setting.keep =
        dropout_mask(options.dropout, {x.size(0), options.heads, queries.size(1), x.size(1)},
                     x.options().requires_grad(false));
    setting.heads = options.heads;
    setting.scale = scale;
    setting.causal = options.causal;
    setting.workspace = options.workspace;
    auto result = attention(terms, setting);
    if (options.map && terms.gate.defined())
      result.attention = gated_attention(result.attention, terms, setting);
    return result;
  }

  Attended finish(const at::Tensor& out, const AttentionResult& result) const {
    return {out, options.map ? result.attention : at::Tensor()};
  }
};

double score_scale(int64_t width, int64_t heads) {
  return 1.0 / std::sqrt(static_cast<double>(width) / static_cast<double>(heads));
}

int64_t width_of(const at::Tensor& weight) {
  return weight.defined() && weight.dim() > 0 ? weight.size(-1) : 0;
}

// A role of Translution: a table with its features, or a projection still to be made.
void set_role(const at::Tensor& x, const at::Tensor& weight, at::Tensor& features,
              at::Tensor& table, std::vector<Call::Projection>& projections) {
  if (weight.dim() == 3)
    features = x, table = weight;
  else
    projections.push_back({weight, &features});
}

}  // namespace

Attended translution(const at::Tensor& x, const RoleWeights& w, const CallOptions& options) {
  Call call("translution", x, options);
  const std::pair<const char*, at::Tensor> roles[] = {{"q", w.q}, {"k", w.k}, {"v", w.v}};
  for (const auto& [name, weight] : roles) {
    TORCH_CHECK(weight.defined(), "translution: ", name,
                " [slots, C, width] or [C, width] is missing");
    TORCH_CHECK(weight.dim() == 2 || weight.dim() == 3, "translution: ", name,
                " must be [slots, C, width] or [C, width], got ", weight.sizes());
  }
  const int64_t width = w.v.size(-1);
  for (const auto& [name, weight] : roles) {
    if (weight.dim() == 3)
      call.table(name, weight, x.size(2), width);
    else
      call.shared(name, weight, width);
  }
  AttentionTerms terms;
  std::vector<Call::Projection> of_queries, of_tokens;
  const bool relative_scores = w.q.dim() == 3 || w.k.dim() == 3;
  const bool relative_values = w.v.dim() == 3;
  TORCH_CHECK(!relative_scores || !options.angles.defined(),
              "translution: rotary angles turn shared queries and keys, but q or k is relative; "
              "leave the angles out");
  set_role(call.queries, w.q, relative_scores ? terms.rel_q : terms.q, terms.table_q, of_queries);
  set_role(x, w.k, relative_scores ? terms.rel_k : terms.k, terms.table_k, of_tokens);
  set_role(x, w.v, relative_values ? terms.rel_v : terms.v, terms.table_v, of_tokens);
  call.project_all(of_queries, of_tokens);
  if (!relative_scores) {
    terms.q = call.rotate(terms.q, true);
    terms.k = call.rotate(terms.k, false);
  }
  const auto result = call.attend(terms, score_scale(width, options.heads));
  return call.finish(relative_values ? result.relative_out : result.out, result);
}

Attended alpha_translution(const at::Tensor& x, const AlphaWeights& w, const CallOptions& options,
                           Mixing mixing) {
  Call call("alpha_translution", x, options);
  const bool shared = w.shared.v.defined();
  TORCH_CHECK(w.shared.q.defined() == shared && w.shared.k.defined() == shared,
              "alpha_translution: shared q, k and v come together; hand in all three or none");
  const int64_t width = width_of(shared ? w.shared.v : w.up);
  const bool small_scores = !shared || w.table.q.defined() || w.table.k.defined();
  const bool small_values = !shared || w.table.v.defined();
  if (shared) {
    call.shared("shared v", w.shared.v, 0);
    call.shared("shared q", w.shared.q, width);
    call.shared("shared k", w.shared.k, width);
  }
  if (small_scores) {
    call.shared("down q", w.down.q, 0);
    call.shared("down k", w.down.k, w.down.q.size(1));
    for (const auto& [name, table] :
         {std::pair{"table q", w.table.q}, std::pair{"table k", w.table.k}})
      if (table.defined()) call.table(name, table, w.down.q.size(1), w.down.q.size(1));
  }
  if (small_values) {
    call.shared("down v", w.down.v, 0);
    const int64_t small = w.down.v.size(1);
    if (w.table.v.defined()) call.table("table v", w.table.v, small, small);
    call.check.tensor("up", w.up, 2, "[r, heads * D]");
    call.check.size("up", w.up, 0, small, "the width of the small space");
    call.check.size("up", w.up, 1, width, "the width of the shared weights");
    call.check.splits("up", w.up, options.heads);
  }

  TORCH_CHECK(shared || !options.angles.defined(),
              "alpha_translution: rotary angles turn shared queries and keys; here there are none");
  AttentionTerms terms;
  double scale = score_scale(width, options.heads);
  std::vector<Call::Projection> of_queries, of_tokens;
  if (shared) {
    of_queries.push_back({w.shared.q, &terms.q});
    of_tokens.push_back({w.shared.k, &terms.k});
    of_tokens.push_back({w.shared.v, &terms.v});
    if (small_scores && mixing == Mixing::mean) scale /= 2;
  }
  if (small_scores) {
    const bool relative = w.table.q.defined() || w.table.k.defined();
    of_queries.push_back(
        {w.down.q, relative ? &terms.rel_q : &terms.q});  // without tables: content
    of_tokens.push_back({w.down.k, relative ? &terms.rel_k : &terms.k});
    terms.table_q = w.table.q;
    terms.table_k = w.table.k;
  }
  if (small_values) {
    of_tokens.push_back({w.down.v, w.table.v.defined() ? &terms.rel_v : &terms.v});
    terms.table_v = w.table.v;
  }
  call.project_all(of_queries, of_tokens);
  if (shared) {
    terms.q = call.rotate(terms.q, true);
    terms.k = call.rotate(terms.k, false);
  }
  const auto result = call.attend(terms, scale);
  if (!small_values) return call.finish(result.out, result);
  const auto expanded = project(w.table.v.defined() ? result.relative_out : result.out, {w.up})[0];
  if (!shared) return call.finish(expanded, result);
  const auto sum = result.out + expanded;
  return call.finish(mixing == Mixing::mean ? sum / 2 : sum, result);
}

Attended self_attention(const at::Tensor& x, const RoleWeights& w, const PositionTerms& position,
                        const CallOptions& options) {
  Call call("self_attention", x, options);
  call.shared("q", w.q, 0);
  const int64_t width = w.q.size(1);
  call.shared("k", w.k, width);
  call.shared("v", w.v, width);
  for (const auto& [name, vectors] : {std::pair{"key_vectors", position.key_vectors},
                                      std::pair{"value_vectors", position.value_vectors}}) {
    if (!vectors.defined()) continue;
    call.check.tensor(name, vectors, 2, "[slots, heads * D]");
    call.check.size(name, vectors, 1, width, "the width of the roles");
  }
  AttentionTerms terms;
  at::Tensor q, k;
  const RoleWeights& b = position.biases;
  TORCH_CHECK(b.q.defined() == b.v.defined() && b.k.defined() == b.v.defined(),
              "self_attention: biases of q, k and v come together; hand in all three or none");
  call.project_all({{w.q, &q, b.q}}, {{w.k, &k, b.k}, {w.v, &terms.v, b.v}});
  terms.q = call.rotate(q, true);
  terms.k = call.rotate(k, false);
  if (position.key_vectors.defined()) terms.rel_q = q, terms.table_k = position.key_vectors;
  terms.table_v = position.value_vectors;
  terms.bias = position.bias;
  terms.position = position.position;
  terms.gate = position.gate;
  const auto result = call.attend(terms, score_scale(width, options.heads));
  return call.finish(terms.table_v.defined() ? result.out + result.relative_out : result.out,
                     result);
}

namespace {

RoleWeights to_roles(const char* name, const OptionalTensorList& list) {
  TORCH_CHECK(list.size() == 3, "alpha_translution: ", name,
              " must be a list of three, for q, k and v, got ", list.size());
  return {value_or_undefined(list.get(0)), value_or_undefined(list.get(1)),
          value_or_undefined(list.get(2))};
}

at::Tensor translution_op(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const OptionalTensor& runs, int64_t heads,
                          bool causal, const OptionalTensor& rows, double dropout,
                          const OptionalTensor& angles) {
  return translution(x, {q, k, v},
                     {heads, value_or_undefined(runs), causal, value_or_undefined(rows), dropout,
                      value_or_undefined(angles)})
      .out;
}

at::Tensor alpha_translution_op(const at::Tensor& x, const OptionalTensorList& shared,
                                const OptionalTensorList& down, const OptionalTensorList& table,
                                const OptionalTensor& up, const OptionalTensor& runs, int64_t heads,
                                const std::string& mixing, bool causal, const OptionalTensor& rows,
                                double dropout, const OptionalTensor& angles) {
  TORCH_CHECK(mixing == "sum" || mixing == "mean",
              "alpha_translution: mixing must be 'sum' or 'mean', got '", mixing, "'");
  return alpha_translution(x,
                           {to_roles("shared", shared), to_roles("down", down),
                            to_roles("table", table), value_or_undefined(up)},
                           {heads, value_or_undefined(runs), causal, value_or_undefined(rows),
                            dropout, value_or_undefined(angles)},
                           mixing == "sum" ? Mixing::sum : Mixing::mean)
      .out;
}

at::Tensor self_attention_op(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                             const at::Tensor& v, int64_t heads, const OptionalTensor& runs,
                             const OptionalTensor& key_vectors, const OptionalTensor& value_vectors,
                             const OptionalTensor& bias, const OptionalTensor& position,
                             const OptionalTensor& gate, bool causal, const OptionalTensor& rows,
                             double dropout, const OptionalTensor& angles,
                             const OptionalTensor& q_bias, const OptionalTensor& k_bias,
                             const OptionalTensor& v_bias) {
  return self_attention(
             x, {q, k, v},
             {value_or_undefined(key_vectors),
              value_or_undefined(value_vectors),
              value_or_undefined(bias),
              value_or_undefined(position),
              value_or_undefined(gate),
              {value_or_undefined(q_bias), value_or_undefined(k_bias), value_or_undefined(v_bias)}},
             {heads, value_or_undefined(runs), causal, value_or_undefined(rows), dropout,
              value_or_undefined(angles)})
      .out;
}

}  // namespace

// These are made of `attention`, `rotary` and matrix products, so they need no gradient, device or
// Meta registration of their own.
TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def(
      "translution(Tensor x, Tensor q, Tensor k, Tensor v, Tensor? runs, int heads, "
      "bool causal=False, Tensor? rows=None, float dropout=0., Tensor? angles=None) -> Tensor",
      translution_op);
  m.def(
      "alpha_translution(Tensor x, Tensor?[] shared, Tensor?[] down, Tensor?[] table, Tensor? up, "
      "Tensor? runs, int heads, str mixing='sum', bool causal=False, Tensor? rows=None, "
      "float dropout=0., Tensor? angles=None) -> Tensor",
      alpha_translution_op);
  m.def(
      "self_attention(Tensor x, Tensor q, Tensor k, Tensor v, int heads, Tensor? runs=None, "
      "Tensor? key_vectors=None, Tensor? value_vectors=None, Tensor? bias=None, "
      "Tensor? position=None, Tensor? gate=None, bool causal=False, Tensor? rows=None, "
      "float dropout=0., Tensor? angles=None, Tensor? q_bias=None, Tensor? k_bias=None, "
      "Tensor? v_bias=None) -> Tensor",
      self_attention_op);
}

}  // namespace translution
