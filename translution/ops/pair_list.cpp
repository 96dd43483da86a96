#include "translution/ops/pair_list.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "translution/ops/check.h"
#include "translution/ops/constant.h"
#include "translution/ops/pair_list_fused.h"
#include "translution/ops/pair_list_portable.h"
#include "translution/ops/register.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr const char *kScores = "pair_scores", *kSoftmax = "pair_softmax", *kMix = "pair_mix";

// ------------------------------------------------------- arguments of the ops, as the dispatcher
// passes them and as everything else takes them

using ScoresForward = at::Tensor(const at::Tensor&, const OptionalTensor&, const at::Tensor&,
                                 const OptionalTensor&, const at::Tensor&, const at::Tensor&,
                                 const OptionalTensor&, const OptionalTensor&, int64_t);
using ScoresBackward = Tensors(const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                               const at::Tensor&, const OptionalTensor&, const at::Tensor&,
                               const at::Tensor&, const OptionalTensor&, const OptionalTensor&,
                               bool);
using SoftmaxForward = at::Tensor(const at::Tensor&, const at::Tensor&, c10::SymInt, double);
using SoftmaxBackward = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                   c10::SymInt, double);
using MixForward = at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                              const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                              const OptionalTensor&, c10::SymInt);
using MixBackward = Tensors(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                            const OptionalTensor&, const at::Tensor&, const at::Tensor&,
                            const OptionalTensor&, const OptionalTensor&, bool);

struct ScoresCall {
  EncodedRows q, k;
  PairList pairs;
  int64_t heads = 1;  // of a forward call
};

struct MixCall {
  at::Tensor weights;
  EncodedRows v;
  PairList pairs;
  c10::SymInt tokens = 0;
};

PairList to_pairs(const at::Tensor& query, const at::Tensor& key, const OptionalTensor& slots,
                  const OptionalTensor& phi) {
  return {query, key, value_or_undefined(slots), value_or_undefined(phi)};
}

template <at::Tensor (*function)(const ScoresCall&)>
at::Tensor scores_op(const at::Tensor& q, const OptionalTensor& q_places, const at::Tensor& k,
                     const OptionalTensor& k_places, const at::Tensor& query, const at::Tensor& key,
                     const OptionalTensor& slots, const OptionalTensor& phi, int64_t heads) {
  return function({{q, value_or_undefined(q_places)},
                   {k, value_or_undefined(k_places)},
                   to_pairs(query, key, slots, phi),
                   heads});
}

template <Tensors (*function)(const at::Tensor&, const ScoresCall&, bool)>
Tensors scores_backward_op(const at::Tensor& d, const at::Tensor& q, const OptionalTensor& q_places,
                           const at::Tensor& k, const OptionalTensor& k_places,
                           const at::Tensor& query, const at::Tensor& key,
                           const OptionalTensor& slots, const OptionalTensor& phi, bool needs_phi) {
  const int64_t heads = d.dim() == 2 ? d.size(1) : 1;  // of another shape, d is refused below
  auto found = function(d,
                        {{q, value_or_undefined(q_places)},
                         {k, value_or_undefined(k_places)},
                         to_pairs(query, key, slots, phi),
                         heads},
                        needs_phi);
  if (!needs_phi) found[2] = at::empty({0}, q.options());
  return found;
}

template <at::Tensor (*function)(const MixCall&)>
at::Tensor mix_op(const at::Tensor& weights, const at::Tensor& v, const OptionalTensor& v_places,
                  const at::Tensor& query, const at::Tensor& key, const OptionalTensor& slots,
                  const OptionalTensor& phi, c10::SymInt tokens) {
  return function({weights,
                   {v, value_or_undefined(v_places)},
                   to_pairs(query, key, slots, phi),
                   std::move(tokens)});
}

template <Tensors (*function)(const at::Tensor&, const MixCall&, bool)>
Tensors mix_backward_op(const at::Tensor& d, const at::Tensor& weights, const at::Tensor& v,
                        const OptionalTensor& v_places, const at::Tensor& query,
                        const at::Tensor& key, const OptionalTensor& slots,
                        const OptionalTensor& phi, bool needs_phi) {
  auto found = function(
      d,
      {weights, {v, value_or_undefined(v_places)}, to_pairs(query, key, slots, phi), d.sym_size(0)},
      needs_phi);
  if (!needs_phi) found[2] = at::empty({0}, v.options());
  return found;
}

// ------------------------------------------------------------------------ checks of the shapes

void check_indices(const char* op, const char* name, const at::Tensor& t, int64_t dims,
                   const char* layout) {
  TORCH_CHECK(t.scalar_type() == at::kLong, op, ": ", name, " must be int64, got ", t.scalar_type(),
              "; convert it");
  TORCH_CHECK(t.dim() == dims, op, ": ", name, " must be ", layout, ", got ", t.sym_sizes());
}

// Shapes and types of the pairs; `check` has seen the first tensor.
void check_pairs(Checker& check, const PairList& pairs, bool tapped) {
  check_indices(check.op(), "query", pairs.query, 1, "[E]");
  check_indices(check.op(), "key", pairs.key, 1, "[E]");
  const auto E = pairs.query.sym_size(0);
  TORCH_CHECK(pairs.key.sym_size(0) == E, check.op(), ": there are ", E, " queries and ",
              pairs.key.sym_size(0), " keys; each pair has one of both");
  TORCH_CHECK(pairs.slots.defined() == pairs.phi.defined(), check.op(),
              ": slots [E, T] and phi [E, T] come together");
  if (!pairs.slots.defined()) {
    TORCH_CHECK(!tapped, check.op(), ": an encoding with places needs slots [E, T] and phi [E, T]");
    return;
  }
  check_indices(check.op(), "slots", pairs.slots, 2, "[E, T]");
  check.tensor("phi", pairs.phi, 2, "[E, T]");
  TORCH_CHECK(pairs.slots.sym_sizes() == pairs.phi.sym_sizes(), check.op(), ": slots are ",
              pairs.slots.sym_sizes(), " but phi is ", pairs.phi.sym_sizes());
  check.size("phi", pairs.phi, 0, E, "the number of pairs");
  TORCH_CHECK(pairs.slots.sym_size(1) >= 1 && pairs.slots.sym_size(1) <= kMaxTaps, check.op(),
              ": expected 1 to ", kMaxTaps, " taps, got ", pairs.slots.sym_size(1));
}

void check_encoding(Checker& check, const char* name, const EncodedRows& encoding) {
  check.tensor(name, encoding.rows, 2, "[rows, width]");
  if (!encoding.places.defined()) return;
  const std::string places = std::string(name) + "_places";
  check_indices(check.op(), places.c_str(), encoding.places, 2, "[tokens, slots] or [1, slots]");
}

void check_scores(const ScoresCall& call) {
  Checker check(kScores);
  check_encoding(check, "q", call.q);
  check_encoding(check, "k", call.k);
  check_pairs(check, call.pairs, call.q.places.defined() || call.k.places.defined());
  check.size("k", call.k.rows, 1, call.q.rows.sym_size(1), "the width of q");
  TORCH_CHECK(call.heads >= 1, kScores, ": expected 1 or more heads, got ", call.heads);
  check.splits("q", call.q.rows, call.heads);
}

void check_mix(const MixCall& call) {
  Checker check(kMix);
  check.tensor("weights", call.weights, 2, "[E, heads]");
  check_encoding(check, "v", call.v);
  check_pairs(check, call.pairs, call.v.places.defined());
  check.size("weights", call.weights, 0, call.pairs.query.sym_size(0), "the number of pairs");
  TORCH_CHECK(call.weights.sym_size(1) >= 1, kMix, ": expected 1 or more heads, got ",
              call.weights.sym_size(1));
  check.splits("v", call.v.rows, call.weights.size(1));
  TORCH_CHECK(call.tokens >= 0, kMix, ": expected a number of tokens, got ", call.tokens);
}

void check_softmax(const at::Tensor& scores, const at::Tensor& query, const c10::SymInt& tokens) {
  Checker check(kSoftmax);
  check.tensor("scores", scores, 2, "[E, heads]");
  check_indices(kSoftmax, "query", query, 1, "[E]");
  check.size("scores", scores, 0, query.sym_size(0), "the number of pairs");
  TORCH_CHECK(tokens >= 0, kSoftmax, ": expected a number of tokens, got ", tokens);
}

// A gradient has the shape of the result.
void check_gradient(const char* op, const at::Tensor& d, const at::Tensor& like,
                    const c10::SymInt& rows, const c10::SymInt& columns) {
  Checker check(op);
  check.tensor("the input", like, 2, "[rows, width]");
  check.tensor("d", d, 2, "the gradient of the result");
  check.size("d", d, 0, rows, "that of the result");
  check.size("d", d, 1, columns, "that of the result");
}

// --------------------------------------------- checks of the values, where the CPU reads by them

void check_range(const char* op, const char* name, const at::Tensor& indices, int64_t low,
                 int64_t count, const char* of) {
  if (indices.numel() == 0) return;
  const auto [least, most] = indices.aminmax();
  const int64_t first = least.item<int64_t>(), last = most.item<int64_t>();
  TORCH_CHECK(first >= low && last < count, op, ": ", name, " must be ", low, " to ", count - 1,
              ", the ", of, ", got ", first < low ? first : last);
}

void check_sorted(const char* op, const at::Tensor& query) {
  const int64_t* const values = query.data_ptr<int64_t>();
  TORCH_CHECK(std::is_sorted(values, values + query.numel()), op,
              ": the pairs must be sorted by query; sort query and key together, such as by "
              "query.sort(stable=True)");
}

void check_encoding_values(const char* op, const EncodedRows& encoding, const char* token_name,
                           const at::Tensor& token, const PairList& pairs) {
  const auto& places = encoding.places;
  const int64_t rows = encoding.rows.size(0);
  if (!places.defined())
    return check_range(op, token_name, token, 0, rows, "tokens of the encoding");
  if (places.size(0) != 1)
    check_range(op, token_name, token, 0, places.size(0), "tokens of the encoding");
  check_range(op, "slots", pairs.slots, 0, places.size(1), "slots of the encoding");
  check_range(op, "places", places, -1, rows, "rows of the encoding, or -1 for none");
}

void check_values(const char* op, const ScoresCall& call) {
  check_sorted(op, call.pairs.query);
  check_encoding_values(op, call.q, "query", call.pairs.query, call.pairs);
  check_encoding_values(op, call.k, "key", call.pairs.key, call.pairs);
}

// The number behind a size that is not symbolic.
int64_t concrete(const c10::SymInt& size) { return size.guard_int(__FILE__, __LINE__); }

void check_values(const char* op, const MixCall& call) {
  check_sorted(op, call.pairs.query);
  check_range(op, "query", call.pairs.query, 0, concrete(call.tokens), "tokens");
  check_encoding_values(op, call.v, "key", call.pairs.key, call.pairs);
}

// ------------------------------------------------------------------------- the implementations

bool is_fused(const at::Tensor& x) {
  return runtime().fused() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

at::Tensor contiguous(const at::Tensor& t) { return t.defined() ? t.contiguous() : t; }
EncodedRows contiguous(const EncodedRows& e) { return {contiguous(e.rows), contiguous(e.places)}; }
PairList contiguous(const PairList& p) {
  return {contiguous(p.query), contiguous(p.key), contiguous(p.slots), contiguous(p.phi)};
}
ScoresCall contiguous(const ScoresCall& c) {
  return {contiguous(c.q), contiguous(c.k), contiguous(c.pairs), c.heads};
}
MixCall contiguous(const MixCall& c) {
  return {contiguous(c.weights), contiguous(c.v), contiguous(c.pairs), c.tokens};
}

at::Tensor scores_portable(const ScoresCall& c) {
  check_scores(c);
  return pair_scores_portable(c.q, c.k, c.pairs, c.heads);
}

at::Tensor scores_cpu(const ScoresCall& given) {
  check_scores(given);
  const auto c = contiguous(given);
  check_values(kScores, c);
  return is_fused(c.q.rows) ? pair_scores_fused(c.q, c.k, c.pairs, c.heads)
                            : pair_scores_portable(c.q, c.k, c.pairs, c.heads);
}

at::Tensor scores_meta(const ScoresCall& c) {
  check_scores(c);
  return at::empty_symint({c.pairs.query.sym_size(0), c.heads}, c.q.rows.options());
}

void check_scores_backward(const at::Tensor& d, const ScoresCall& c) {
  check_gradient(kScores, d, c.q.rows, c.pairs.query.sym_size(0), c.heads);
  check_scores(c);
}

Tensors scores_backward_portable(const at::Tensor& d, const ScoresCall& c, bool needs_phi) {
  check_scores_backward(d, c);
  return pair_scores_gradients_portable(d, c.q, c.k, c.pairs, needs_phi);
}

Tensors scores_backward_cpu(const at::Tensor& d, const ScoresCall& given, bool needs_phi) {
  check_scores_backward(d, given);
  const auto c = contiguous(given);
  check_values(kScores, c);
  return is_fused(d) ? pair_scores_gradients(contiguous(d), c.q, c.k, c.pairs, needs_phi)
                     : pair_scores_gradients_portable(d, c.q, c.k, c.pairs, needs_phi);
}

// The gradients of a plain form by its three inputs, of which phi may be missing.
Tensors gradients_of_plain(const std::function<at::Tensor(const Tensors&)>& form,
                           const Tensors& inputs, const at::Tensor& d, bool needs_phi) {
  auto found = plain_gradients([&](const Tensors& given) { return Tensors{form(given)}; }, inputs,
                               {d}, {true, true, needs_phi && inputs[2].defined()});
  for (size_t i = 0; i < 2; ++i)
    if (!found[i].defined()) found[i] = at::zeros_like(inputs[i]);
  return found;
}

Tensors scores_backward_plain(const at::Tensor& d, const ScoresCall& c, bool needs_phi) {
  const auto form = [&](const Tensors& given) {
    auto call = c;
    call.q.rows = given[0], call.k.rows = given[1], call.pairs.phi = given[2];
    return scores_portable(call);
  };
  return gradients_of_plain(form, {c.q.rows, c.k.rows, c.pairs.phi}, d, needs_phi);
}

at::Tensor empty_phi(const PairList& pairs, bool needed) {
  return needed ? empty_of(pairs.phi) : at::Tensor();
}

Tensors scores_backward_meta(const at::Tensor& d, const ScoresCall& c, bool needs_phi) {
  check_scores_backward(d, c);
  return {empty_of(c.q.rows), empty_of(c.k.rows), empty_phi(c.pairs, needs_phi)};
}

at::Tensor mix_portable(const MixCall& c) {
  check_mix(c);
  return pair_mix_portable(c.weights, c.v, c.pairs, concrete(c.tokens));
}

at::Tensor mix_cpu(const MixCall& given) {
  check_mix(given);
  const auto c = contiguous(given);
  check_values(kMix, c);
  return is_fused(c.v.rows) ? pair_mix_fused(c.weights, c.v, c.pairs, concrete(c.tokens))
                            : pair_mix_portable(c.weights, c.v, c.pairs, concrete(c.tokens));
}

at::Tensor mix_meta(const MixCall& c) {
  check_mix(c);
  return at::empty_symint({c.tokens, c.v.rows.sym_size(1)}, c.v.rows.options());
}

void check_mix_backward(const at::Tensor& d, const MixCall& c) {
  check_gradient(kMix, d, c.v.rows, c.tokens, c.v.rows.sym_size(1));
  check_mix(c);
}

Tensors mix_backward_portable(const at::Tensor& d, const MixCall& c, bool needs_phi) {
  check_mix_backward(d, c);
  return pair_mix_gradients_portable(d, c.weights, c.v, c.pairs, needs_phi);
}

Tensors mix_backward_plain(const at::Tensor& d, const MixCall& c, bool needs_phi) {
  const auto form = [&](const Tensors& given) {
    auto call = c;
    call.weights = given[0], call.v.rows = given[1], call.pairs.phi = given[2];
    return mix_portable(call);
  };
  return gradients_of_plain(form, {c.weights, c.v.rows, c.pairs.phi}, d, needs_phi);
}

Tensors mix_backward_cpu(const at::Tensor& d, const MixCall& given, bool needs_phi) {
  check_mix_backward(d, given);
  const auto c = contiguous(given);
  check_values(kMix, c);
  return is_fused(d) ? pair_mix_gradients(contiguous(d), c.weights, c.v, c.pairs, needs_phi)
                     : pair_mix_gradients_portable(d, c.weights, c.v, c.pairs, needs_phi);
}

Tensors mix_backward_meta(const at::Tensor& d, const MixCall& c, bool needs_phi) {
  check_mix_backward(d, c);
  return {empty_of(c.weights), empty_of(c.v.rows), empty_phi(c.pairs, needs_phi)};
}

at::Tensor softmax_portable(const at::Tensor& scores, const at::Tensor& query, c10::SymInt tokens,
                            double scale) {
  check_softmax(scores, query, tokens);
  return pair_softmax_portable(scores, query, concrete(tokens), scale);
}

at::Tensor softmax_cpu(const at::Tensor& scores, const at::Tensor& query, c10::SymInt tokens,
                       double scale) {
  check_softmax(scores, query, tokens);
  const auto order = query.contiguous();
  check_sorted(kSoftmax, order);
  check_range(kSoftmax, "query", order, 0, concrete(tokens), "tokens");
  return is_fused(scores) ? pair_softmax_fused(scores.contiguous(), order, scale)
                          : pair_softmax_portable(scores, order, concrete(tokens), scale);
}

at::Tensor softmax_meta(const at::Tensor& scores, const at::Tensor& query, c10::SymInt tokens,
                        double) {
  check_softmax(scores, query, tokens);
  return empty_of(scores);
}

at::Tensor softmax_backward_portable(const at::Tensor& d, const at::Tensor& weights,
                                     const at::Tensor& query, c10::SymInt tokens, double scale) {
  return pair_softmax_gradient_portable(d, weights, query, concrete(tokens), scale);
}

at::Tensor softmax_backward_cpu(const at::Tensor& d, const at::Tensor& weights,
                                const at::Tensor& query, c10::SymInt tokens, double scale) {
  check_gradient(kSoftmax, d, weights, weights.size(0), weights.size(1));
  check_softmax(weights, query, tokens);
  const auto order = query.contiguous();
  check_sorted(kSoftmax, order);
  check_range(kSoftmax, "query", order, 0, concrete(tokens), "tokens");
  return is_fused(d) ? pair_softmax_gradient(d, weights.contiguous(), order, scale)
                     : pair_softmax_gradient_portable(d, weights, order, concrete(tokens), scale);
}

at::Tensor softmax_backward_meta(const at::Tensor&, const at::Tensor& weights, const at::Tensor&,
                                 c10::SymInt, double) {
  return empty_of(weights);
}

// ----------------------------------------------------------------------------------- gradients

at::Tensor call_scores(const ScoresCall& c) {
  static const Op<ScoresForward> op("translution::pair_scores");
  return op(c.q.rows, optional(c.q.places), c.k.rows, optional(c.k.places), c.pairs.query,
            c.pairs.key, optional(c.pairs.slots), optional(c.pairs.phi), c.heads);
}

at::Tensor scores_autograd(const ScoresCall& c) {
  const Differentiable call(kScores, {c.q.rows, c.k.rows, c.pairs.phi});
  const auto out = call.below([&] { return call_scores(c); });
  call.finish({out},
              {c.q.rows, c.q.places, c.k.rows, c.k.places, c.pairs.query, c.pairs.key,
               c.pairs.slots, c.pairs.phi},
              [](const BackwardCall& b) -> Tensors {
                static const Op<ScoresBackward> op("translution::pair_scores_backward");
                const auto& s = b.saved;
                auto found = op(b.d[0], s[0], optional(s[1]), s[2], optional(s[3]), s[4], s[5],
                                optional(s[6]), optional(s[7]), b.needs[2]);
                if (!b.needs[2]) found[2] = at::Tensor();
                return found;
              });
  return out;
}

at::Tensor call_softmax(const at::Tensor& scores, const at::Tensor& query, c10::SymInt tokens,
                        double scale) {
  static const Op<SoftmaxForward> op("translution::pair_softmax");
  return op(scores, query, tokens, scale);
}

at::Tensor softmax_autograd(const at::Tensor& scores, const at::Tensor& query, c10::SymInt tokens,
                            double scale) {
  const Differentiable call(kSoftmax, {scores});
  const auto out = call.below([&] { return call_softmax(scores, query, tokens, scale); });
  call.finish({out}, {out, query}, [tokens, scale](const BackwardCall& b) -> Tensors {
    static const Op<SoftmaxBackward> op("translution::pair_softmax_backward");
    return {op(b.d[0], b.saved[0], b.saved[1], tokens, scale)};
  });
  return out;
}

at::Tensor call_mix(const MixCall& c) {
  static const Op<MixForward> op("translution::pair_mix");
  return op(c.weights, c.v.rows, optional(c.v.places), c.pairs.query, c.pairs.key,
            optional(c.pairs.slots), optional(c.pairs.phi), c.tokens);
}

at::Tensor mix_autograd(const MixCall& c) {
  const Differentiable call(kMix, {c.weights, c.v.rows, c.pairs.phi});
  const auto out = call.below([&] { return call_mix(c); });
  call.finish(
      {out},
      {c.weights, c.v.rows, c.v.places, c.pairs.query, c.pairs.key, c.pairs.slots, c.pairs.phi},
      [](const BackwardCall& b) -> Tensors {
        static const Op<MixBackward> op("translution::pair_mix_backward");
        const auto& s = b.saved;
        auto found = op(b.d[0], s[0], s[1], optional(s[2]), s[3], s[4], optional(s[5]),
                        optional(s[6]), b.needs[2]);
        if (!b.needs[2]) found[2] = at::Tensor();
        return found;
      });
  return out;
}

}  // namespace

at::Tensor pair_scores(const EncodedRows& q, const EncodedRows& k, const PairList& pairs,
                       int64_t heads) {
  return call_scores({q, k, pairs, heads});
}

at::Tensor pair_softmax(const at::Tensor& scores, const at::Tensor& query, c10::SymInt tokens,
                        double scale) {
  return call_softmax(scores, query, tokens, scale);
}

at::Tensor pair_mix(const at::Tensor& weights, const EncodedRows& v, const PairList& pairs,
                    c10::SymInt tokens) {
  return call_mix({weights, v, pairs, std::move(tokens)});
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<ScoresForward>(
      m,
      "pair_scores(Tensor q, Tensor? q_places, Tensor k, Tensor? k_places, Tensor query, "
      "Tensor key, Tensor? slots, Tensor? phi, int heads) -> Tensor",
      {scores_op<scores_portable>, scores_op<scores_cpu>, scores_op<scores_meta>,
       scores_op<scores_autograd>, scores_op<scores_portable>});
  register_op<ScoresBackward>(
      m,
      "pair_scores_backward(Tensor d, Tensor q, Tensor? q_places, Tensor k, Tensor? k_places, "
      "Tensor query, Tensor key, Tensor? slots, Tensor? phi, bool needs_phi) -> Tensor[]",
      {scores_backward_op<scores_backward_portable>, scores_backward_op<scores_backward_cpu>,
       scores_backward_op<scores_backward_meta>, nullptr,
       scores_backward_op<scores_backward_plain>});
  register_op<SoftmaxForward>(
      m, "pair_softmax(Tensor scores, Tensor query, SymInt tokens, float scale) -> Tensor",
      {softmax_portable, softmax_cpu, softmax_meta, softmax_autograd, softmax_portable});
  register_op<SoftmaxBackward>(
      m,
      "pair_softmax_backward(Tensor d, Tensor weights, Tensor query, SymInt tokens, "
      "float scale) -> Tensor",
      {softmax_backward_portable, softmax_backward_cpu, softmax_backward_meta, nullptr,
       softmax_backward_portable});
  register_op<MixForward>(
      m,
      "pair_mix(Tensor weights, Tensor v, Tensor? v_places, Tensor query, Tensor key, "
      "Tensor? slots, Tensor? phi, SymInt tokens) -> Tensor",
      {mix_op<mix_portable>, mix_op<mix_cpu>, mix_op<mix_meta>, mix_op<mix_autograd>,
       mix_op<mix_portable>});
  register_op<MixBackward>(
      m,
      "pair_mix_backward(Tensor d, Tensor weights, Tensor v, Tensor? v_places, Tensor query, "
      "Tensor key, Tensor? slots, Tensor? phi, bool needs_phi) -> Tensor[]",
      {mix_backward_op<mix_backward_portable>, mix_backward_op<mix_backward_cpu>,
       mix_backward_op<mix_backward_meta>, nullptr, mix_backward_op<mix_backward_plain>});
}

}  // namespace translution
