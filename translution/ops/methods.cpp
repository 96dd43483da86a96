#include "translution/ops/methods.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "translution/ops/attention_portable.h"
#include "translution/ops/check.h"
#include "translution/ops/compat.h"
#include "translution/ops/constant.h"
#include "translution/ops/padding.h"
#include "translution/ops/project.h"
#include "translution/ops/rotary.h"

namespace translution {
namespace {

// The features of the query rows: [B,N,C] -> [B,Nq,C].
at::Tensor take_rows(const at::Tensor& x, const std::vector<int64_t>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  bool consecutive = true;
  for (int64_t r = 0; r < count; ++r) consecutive = consecutive && rows[r] == rows[0] + r;
  if (consecutive) return x.narrow(1, rows[0], count);
  // LibTorch 1.13 has no index_select on Meta. Any rows of the right shape do.
  if (x.is_meta()) return x.narrow(1, 0, 1).expand({-1, count, -1});
  return x.index_select(1, constant_tensor(rows).to(x.device()));
}

// One call of a method: its checks, its projections and its attention.
struct MethodCall {
  const AttentionCall& call;
  Checker check;
  at::Tensor x;        // [B,N,C], for keys and values: zeros at padding
  at::Tensor queries;  // [B,Nq,C]: the query rows of the input

  MethodCall(const char* op, const at::Tensor& x, const AttentionCall& call)
      : call(call), check(op, call.precision), x(x) {
    TORCH_CHECK(call.heads > 0, op, ": expected one or more heads, got ", call.heads);
    check.tensor("x", x, 3, "[B, N, C]");
    TORCH_CHECK(x.sym_size(1) > 0, op, ": expected one or more tokens, got x ", x.sym_sizes());
    for (const int64_t row : call.pairs.rows)
      TORCH_CHECK(row >= 0 && x.sym_size(1) > row, op, ": expected query rows from 0 to ",
                  x.sym_size(1) - 1, ", got ", row);
    queries = has_rows() ? take_rows(x, call.pairs.rows) : x;
    if (!call.mask.defined()) return;
    check.padding(call.mask, x.sym_size(0), x.sym_size(1));
    this->x = clear_padding(x, call.mask);
  }

  bool has_rows() const { return !call.pairs.rows.empty(); }

  // Checks a shared weight [C, width]; any width if `width` is 0.
  void check_shared(const char* name, const at::Tensor& weight, const c10::SymInt& width) {
    check.tensor(name, weight, 2, "[C, width]");
    check.size(name, weight, 0, x.sym_size(2), "the channels of x");
    check.splits(name, weight, call.heads);
    if (width > 0) check.size(name, weight, 1, width, "the width of the other roles");
  }

  // Checks a table of matrices [slots, in, out].
  void check_table(const char* name, const at::Tensor& weight, const c10::SymInt& in,
                   const c10::SymInt& out) {
    check.tensor(name, weight, 3, "[slots, in, out], one matrix per slot");
    check.size(name, weight, 1, in, "the channels that it multiplies");
    check.size(name, weight, 2, out, "the width of the other roles");
    check.splits(name, weight, call.heads);
  }

  // Checks the weights of a role in alpha's small space: `down` and, for a relative role, its
  // table. They end at `out` channels.
  void check_small(const std::string& role, const at::Tensor& down, const at::Tensor& relative,
                   int64_t out);

  // A projection of the query rows or of all tokens; the result is assigned to `out`.
  struct Projection {
    at::Tensor weight;
    at::Tensor* out;
    at::Tensor bias = {};
  };

  void project_all(std::vector<Projection> query_projections,
                   std::vector<Projection> token_projections) const {
    if (queries.is_same(x)) {
      token_projections.insert(token_projections.end(), query_projections.begin(),
                               query_projections.end());
      query_projections.clear();
    }
    project_rows(queries, query_projections);
    project_rows(x, token_projections);
  }

  // `project` takes a bias for every weight or for none, so there are up to two calls.
  void project_rows(const at::Tensor& rows, const std::vector<Projection>& projections) const {
    for (const bool biased : {true, false}) {
      std::vector<at::Tensor> weights, biases;
      std::vector<at::Tensor*> outs;
      for (const auto& projection : projections) {
        if (projection.bias.defined() != biased) continue;
        weights.push_back(projection.weight);
        if (biased) biases.push_back(projection.bias);
        outs.push_back(projection.out);
      }
      if (weights.empty()) continue;
      const auto products =
          translution::project(rows, weights, biases, /*transposed=*/false, call.precision);
      for (size_t p = 0; p < products.size(); ++p) *outs[p] = products[p];
    }
  }

  at::Tensor rotate(const at::Tensor& q, bool at_rows) const {
    const auto& angles = call.angles;
    if (!angles.defined()) return q;
    TORCH_CHECK(angles.dim() == 2 && angles.sym_size(0) == x.sym_size(1), check.op(),
                ": rotary angles must be [", x.sym_size(1),
                ", D / 2], one row per token of x, got ", angles.sym_sizes());
    const bool select = at_rows && has_rows();
    return rotary(q, select ? take_rows(angles.unsqueeze(0), call.pairs.rows)[0] : angles,
                  call.heads);
  }

  // The call with scale = factor / sqrt(D), for `width` = heads * D.
  AttentionCall scaled(int64_t width, double factor = 1) const {
    auto scaled = call;
    scaled.scale = factor / std::sqrt(static_cast<double>(width) / static_cast<double>(call.heads));
    return scaled;
  }

  MethodResult finish(const at::Tensor& out, const AttentionResult& result) const {
    return {out, call.map ? result.attention : at::Tensor()};
  }
};

// The last dimension of a weight as a concrete number: the kernels need concrete widths.
int64_t width_of(const at::Tensor& weight) {
  if (!weight.defined() || weight.dim() == 0) return 0;
  return weight.sym_size(-1).guard_int(__FILE__, __LINE__);
}

void MethodCall::check_small(const std::string& role, const at::Tensor& down,
                             const at::Tensor& relative, int64_t out) {
  check_shared(("down " + role).c_str(), down, relative.defined() ? 0 : out);
  if (relative.defined()) check_table(("table " + role).c_str(), relative, width_of(down), out);
}

// Sets up a role of Translution: a relative role gets its features and table, another role a
// projection to be computed.
void set_role(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
              at::Tensor& features, at::Tensor& table,
              std::vector<MethodCall::Projection>& projections) {
  if (weight.dim() == 3)
    features = x, table = weight;
  else
    projections.push_back({weight, &features, bias});
}

bool has_bias_rows(const at::Tensor& weight, const at::Tensor& x) {
  return weight.dim() == 3 && weight.sym_size(1) == x.sym_size(2) + 1;
}

// Checks the weights and biases of Translution.
void check_roles(MethodCall& method, const RoleWeights& w, const RoleWeights& biases) {
  const std::tuple<const char*, at::Tensor, at::Tensor> roles[] = {
      {"q", w.q, biases.q}, {"k", w.k, biases.k}, {"v", w.v, biases.v}};
  for (const auto& [name, weight, bias] : roles) {
    TORCH_CHECK(weight.defined(), "translution: ", name,
                " [slots, C, width] or [C, width] is missing");
    TORCH_CHECK(weight.dim() == 2 || weight.dim() == 3, "translution: ", name,
                " must be [slots, C, width] or [C, width], got ", weight.sym_sizes());
    TORCH_CHECK(weight.dim() == 2 || !bias.defined(), "translution: ", name, " is relative, ",
                "so its biases are the last row of each of its matrices, not a vector");
  }
  const int64_t width = width_of(w.v);
  for (const auto& [name, weight, bias] : roles) {
    if (weight.dim() == 3)
      method.check_table(name, weight,
                         method.x.sym_size(2) + (has_bias_rows(weight, method.x) ? 1 : 0), width);
    else
      method.check_shared(name, weight, width);
  }
}

}  // namespace

at::Tensor with_constant(const at::Tensor& x) {
  auto sizes = x.sym_sizes().vec();
  sizes.back() = 1;
  return at::cat({x, at::ones_symint(sizes, x.options())}, -1);
}

MethodResult translution(const at::Tensor& x, const RoleWeights& w, const AttentionCall& call,
                         const RoleWeights& biases) {
  MethodCall method("translution", x, call);
  check_roles(method, w, biases);
  const int64_t width = width_of(w.v);
  AttentionTerms terms;
  std::vector<MethodCall::Projection> query_projections, token_projections;
  const bool relative_scores = w.q.dim() == 3 || w.k.dim() == 3;
  const bool relative_values = w.v.dim() == 3;
  TORCH_CHECK(!relative_scores || !call.angles.defined(),
              "translution: rotary angles rotate shared queries and keys, but q or k is relative; "
              "leave out the angles");
  // Made once if roles share it: attention encodes and accumulates the same features together.
  const bool of_keys = has_bias_rows(w.k, x) || has_bias_rows(w.v, x);
  const bool same = method.queries.is_same(method.x), of_queries = has_bias_rows(w.q, x);
  const auto wide = of_keys || (same && of_queries) ? with_constant(method.x) : at::Tensor();
  const auto wide_queries = same || !of_queries ? wide : with_constant(method.queries);
  set_role(of_queries ? wide_queries : method.queries, w.q, biases.q,
           relative_scores ? terms.rel_q : terms.q, terms.table_q, query_projections);
  set_role(has_bias_rows(w.k, x) ? wide : method.x, w.k, biases.k,
           relative_scores ? terms.rel_k : terms.k, terms.table_k, token_projections);
  set_role(has_bias_rows(w.v, x) ? wide : method.x, w.v, biases.v,
           relative_values ? terms.rel_v : terms.v, terms.table_v, token_projections);
  method.project_all(query_projections, token_projections);
  if (!relative_scores) {
    terms.q = method.rotate(terms.q, true);
    terms.k = method.rotate(terms.k, false);
  }
  const auto result = attention(terms, method.scaled(width));
  return method.finish(relative_values ? result.relative_out : result.out, result);
}

namespace {

void check_biases(const char* op, const RoleWeights& b, bool shared) {
  TORCH_CHECK(b.q.defined() == b.v.defined() && b.k.defined() == b.v.defined(), op,
              ": expected biases of q, k and v together; pass all three or none");
  TORCH_CHECK(shared || !b.v.defined(), op,
              ": biases are added to shared q, k and v, but there are none; leave out the biases");
}

}  // namespace

MethodResult alpha_translution(const at::Tensor& x, const AlphaWeights& w,
                               const AttentionCall& call, Mixing mixing) {
  MethodCall method("alpha_translution", x, call);
  const bool shared = w.shared.v.defined();
  TORCH_CHECK(w.shared.q.defined() == shared && w.shared.k.defined() == shared,
              "alpha_translution: expected shared q, k and v together; pass all three or none");
  check_biases("alpha_translution", w.biases, shared);
  const int64_t width = width_of(shared ? w.shared.v : w.up);
  const bool small_scores = !shared || w.table.q.defined() || w.table.k.defined();
  const bool small_values = !shared || w.table.v.defined();
  if (shared) {
    method.check_shared("shared v", w.shared.v, 0);
    method.check_shared("shared q", w.shared.q, width);
    method.check_shared("shared k", w.shared.k, width);
  }
  if (small_scores) {
    const auto& table = w.table.k.defined() ? w.table.k : w.table.q;
    const int64_t score_width = width_of(table.defined() ? table : w.down.q);
    method.check_small("q", w.down.q, w.table.q, score_width);
    method.check_small("k", w.down.k, w.table.k, score_width);
  }
  if (small_values) {
    const int64_t value_width = width_of(w.table.v.defined() ? w.table.v : w.down.v);
    method.check_small("v", w.down.v, w.table.v, value_width);
    method.check.tensor("up", w.up, 2, "[r, heads * D]");
    method.check.size("up", w.up, 0, value_width, "the width of the small space");
    method.check.size("up", w.up, 1, width, "the width of the shared weights");
    method.check.splits("up", w.up, call.heads);
  }

  TORCH_CHECK(shared || !call.angles.defined(),
              "alpha_translution: rotary angles rotate shared queries and keys, but there are "
              "none; leave out the angles");
  AttentionTerms terms;
  std::vector<MethodCall::Projection> query_projections, token_projections;
  if (shared) {
    query_projections.push_back({w.shared.q, &terms.q, w.biases.q});
    token_projections.push_back({w.shared.k, &terms.k, w.biases.k});
    token_projections.push_back({w.shared.v, &terms.v, w.biases.v});
  }
  if (small_scores) {
    const bool relative = w.table.q.defined() || w.table.k.defined();
    query_projections.push_back(
        {w.down.q, relative ? &terms.rel_q : &terms.q});  // without tables: content
    token_projections.push_back({w.down.k, relative ? &terms.rel_k : &terms.k});
    terms.table_q = w.table.q;
    terms.table_k = w.table.k;
  }
  if (small_values) {
    token_projections.push_back({w.down.v, w.table.v.defined() ? &terms.rel_v : &terms.v});
    terms.table_v = w.table.v;
  }
  method.project_all(query_projections, token_projections);
  if (shared) {
    terms.q = method.rotate(terms.q, true);
    terms.k = method.rotate(terms.k, false);
  }
  const bool halved = shared && small_scores && mixing == Mixing::mean;
  const auto result = attention(terms, method.scaled(width, halved ? 0.5 : 1));
  if (!small_values) return method.finish(result.out, result);
  const auto expanded = project(w.table.v.defined() ? result.relative_out : result.out, {w.up}, {},
                                /*transposed=*/false, call.precision)[0];
  if (!shared) return method.finish(expanded, result);
  const auto sum = result.out + expanded;
  return method.finish(mixing == Mixing::mean ? sum / 2 : sum, result);
}

MethodResult self_attention(const at::Tensor& x, const RoleWeights& w,
                            const PositionTerms& position, const AttentionCall& call) {
  MethodCall method("self_attention", x, call);
  method.check_shared("q", w.q, 0);
  const int64_t width = width_of(w.q);
  method.check_shared("k", w.k, width);
  method.check_shared("v", w.v, width);
  for (const auto& [name, vectors] : {std::pair{"key_vectors", position.key_vectors},
                                      std::pair{"value_vectors", position.value_vectors}}) {
    if (!vectors.defined()) continue;
    method.check.tensor(name, vectors, 2, "[slots, heads * D]");
    method.check.size(name, vectors, 1, width, "the width of the roles");
  }
  AttentionTerms terms;
  at::Tensor q, k;
  const RoleWeights& b = position.biases;
  check_biases("self_attention", b, true);
  method.project_all({{w.q, &q, b.q}}, {{w.k, &k, b.k}, {w.v, &terms.v, b.v}});
  terms.q = method.rotate(q, true);
  terms.k = method.rotate(k, false);
  if (position.key_vectors.defined()) terms.rel_q = q, terms.table_k = position.key_vectors;
  terms.table_v = position.value_vectors;
  terms.bias = position.bias;
  terms.position = position.position;
  terms.gate = position.gate;
  const auto scaled = method.scaled(width);
  auto result = attention(terms, scaled);
  if (call.map && terms.gate.defined())
    result.attention = gated_attention(result.attention, terms, scaled);
  return method.finish(terms.table_v.defined() ? result.out + result.relative_out : result.out,
                       result);
}

namespace {

RoleWeights to_roles(const char* name, const OptionalTensorList& list) {
  TORCH_CHECK(list.size() == 3, "alpha_translution: ", name,
              " must be a list of three, for q, k and v, got ", list.size());
  return {value_or_undefined(list.get(0)), value_or_undefined(list.get(1)),
          value_or_undefined(list.get(2))};
}

// The arguments of the registered methods other than weights.
AttentionCall to_call(const at::Tensor& x, const std::string& pairs, int64_t heads,
                      at::IntArrayRef grid, at::IntArrayRef rows, double dropout,
                      const OptionalTensor& angles, const std::string& precision,
                      const OptionalTensor& mask) {
  AttentionCall call;
  call.pairs = {pairs, grid.vec(), rows.vec()};
  call.heads = heads;
  call.angles = value_or_undefined(angles);
  call.precision = parse_name("precision", kPrecisions, precision);
  call.keep = dropout_mask(dropout, x, call);
  call.mask = value_or_undefined(mask);
  return call;
}

at::Tensor translution_op(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& v, const std::string& pairs, int64_t heads,
                          at::IntArrayRef grid, at::IntArrayRef rows, double dropout,
                          const OptionalTensor& angles, const OptionalTensor& q_bias,
                          const OptionalTensor& k_bias, const OptionalTensor& v_bias,
                          const std::string& precision, const OptionalTensor& mask) {
  return translution(
             x, {q, k, v}, to_call(x, pairs, heads, grid, rows, dropout, angles, precision, mask),
             {value_or_undefined(q_bias), value_or_undefined(k_bias), value_or_undefined(v_bias)})
      .out;
}

at::Tensor alpha_translution_op(const at::Tensor& x, const OptionalTensorList& shared,
                                const OptionalTensorList& down, const OptionalTensorList& table,
                                const OptionalTensor& up, const std::string& pairs, int64_t heads,
                                const std::string& mixing, at::IntArrayRef grid,
                                at::IntArrayRef rows, double dropout, const OptionalTensor& angles,
                                const OptionalTensor& q_bias, const OptionalTensor& k_bias,
                                const OptionalTensor& v_bias, const std::string& precision,
                                const OptionalTensor& mask) {
  const RoleWeights biases{value_or_undefined(q_bias), value_or_undefined(k_bias),
                           value_or_undefined(v_bias)};
  return alpha_translution(x,
                           {to_roles("shared", shared), to_roles("down", down),
                            to_roles("table", table), value_or_undefined(up), biases},
                           to_call(x, pairs, heads, grid, rows, dropout, angles, precision, mask),
                           parse_name("mixing", kMixings, mixing))
      .out;
}

at::Tensor self_attention_op(const at::Tensor& x, const at::Tensor& q, const at::Tensor& k,
                             const at::Tensor& v, int64_t heads, const std::string& pairs,
                             const OptionalTensor& key_vectors, const OptionalTensor& value_vectors,
                             const OptionalTensor& bias, const OptionalTensor& position,
                             const OptionalTensor& gate, at::IntArrayRef grid, at::IntArrayRef rows,
                             double dropout, const OptionalTensor& angles,
                             const OptionalTensor& q_bias, const OptionalTensor& k_bias,
                             const OptionalTensor& v_bias, const std::string& precision,
                             const OptionalTensor& mask) {
  return self_attention(
             x, {q, k, v},
             {value_or_undefined(key_vectors),
              value_or_undefined(value_vectors),
              value_or_undefined(bias),
              value_or_undefined(position),
              value_or_undefined(gate),
              {value_or_undefined(q_bias), value_or_undefined(k_bias), value_or_undefined(v_bias)}},
             to_call(x, pairs, heads, grid, rows, dropout, angles, precision, mask))
      .out;
}

}  // namespace

// These ops consist of `attention`, `rotary` and `project`, so they need no gradient, device or
// Meta registration of their own.
TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def(
      "translution(Tensor x, Tensor q, Tensor k, Tensor v, str pairs, int heads, int[] grid=[], "
      "int[] rows=[], float dropout=0., Tensor? angles=None, Tensor? q_bias=None, "
      "Tensor? k_bias=None, Tensor? v_bias=None, str precision='float32', Tensor? mask=None) "
      "-> Tensor",
      translution_op);
  m.def(
      "alpha_translution(Tensor x, Tensor?[] shared, Tensor?[] down, Tensor?[] table, Tensor? up, "
      "str pairs, int heads, str mixing='sum', int[] grid=[], int[] rows=[], float dropout=0., "
      "Tensor? angles=None, Tensor? q_bias=None, Tensor? k_bias=None, Tensor? v_bias=None, "
      "str precision='float32', Tensor? mask=None) -> Tensor",
      alpha_translution_op);
  m.def(
      "self_attention(Tensor x, Tensor q, Tensor k, Tensor v, int heads, str pairs='', "
      "Tensor? key_vectors=None, Tensor? value_vectors=None, Tensor? bias=None, "
      "Tensor? position=None, Tensor? gate=None, int[] grid=[], int[] rows=[], float dropout=0., "
      "Tensor? angles=None, Tensor? q_bias=None, Tensor? k_bias=None, Tensor? v_bias=None, "
      "str precision='float32', Tensor? mask=None) -> Tensor",
      self_attention_op);
}
TORCH_LIBRARY_IMPL(translution, FuncTorchBatched, m) {  // vmap of an op is vmap of its parts
  m.impl("translution", translution_op);
  m.impl("alpha_translution", alpha_translution_op);
  m.impl("self_attention", self_attention_op);
}

}  // namespace translution
