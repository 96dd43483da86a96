#include "translution/ops/attention_portable.h"

#include <ATen/ATen.h>

#include <limits>

#include "translution/ops/pair_groups.h"
#include "translution/ops/part_sums.h"
#include "translution/ops/relative_side.h"
#include "translution/ops/rounding.h"

namespace translution {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

at::Tensor split_heads(const at::Tensor& x, int64_t heads) {  // [B,N,E] -> [B,H,N,D]
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

at::Tensor join_heads(const at::Tensor& x) {  // [B,H,N,D] -> [B,N,E]
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

// Shared by forward and backward: sizes, pairs and relative sides.
struct Context {
  const AttentionTerms& terms;
  const AttentionCall& call;
  int64_t batch, queries, tokens;
  at::TensorOptions options;
  std::shared_ptr<const PairGroups> groups;
  PartSums sums;
  RelativeSide q, k, v;

  Context(const AttentionTerms& terms, const AttentionCall& call, const AttentionSizes& size)
      : terms(terms),
        call(call),
        batch(size.batch.expect_int()),
        queries(size.queries.expect_int()),
        tokens(size.tokens.expect_int()),
        options((terms.q.defined()       ? terms.q
                 : terms.rel_q.defined() ? terms.rel_q
                                         : terms.table_q)
                    .options()),
        groups(group_pairs(*pairs_of(call, tokens), options.device())),
        sums(call.group, pairs_of(call, tokens)),
        q(terms.rel_q, terms.table_q, batch, call.precision),
        k(terms.rel_k, terms.table_k, batch, call.precision),
        v(terms.rel_v, terms.table_v, batch, call.precision) {}

  // x as an operand of a product: rounded if products are bfloat16.
  at::Tensor operand(const at::Tensor& x) const {
    return call.precision == Precision::bf16 ? rounded(x) : x;
  }

  at::Tensor heads_of(const at::Tensor& x) const { return split_heads(operand(x), call.heads); }

  bool relative_scores() const { return q.present(); }

  // Key matrices are indexed by the key slot, key vectors by the slot.
  int64_t key_row(const PairGroup& group) const {
    return terms.rel_k.defined() ? group.key_slot : group.slot;
  }

  // The pairs that do not attend: [Nq,N], or [B,1,Nq or 1,N] with a key padding mask. Undefined if
  // there are none.
  at::Tensor closed_pairs() const {
    if (!call.mask.defined()) return groups->closed;
    const auto padding = call.mask.logical_not().unsqueeze(1).unsqueeze(1);
    return groups->closed.defined() ? padding.logical_or(groups->closed) : padding;
  }

  at::Tensor masked_softmax(const at::Tensor& scores) const {
    const auto closed = closed_pairs();
    if (!closed.defined()) return at::softmax(scores, -1);
    // In a row without pairs -infinity would give NaN, also for derivatives.
    const auto left_out = closed.logical_and(closed.all(-1, /*keepdim=*/true).logical_not());
    return at::softmax(scores.masked_fill(left_out, kMinusInfinity), -1).masked_fill(closed, 0);
  }

  // softmax_j(position[slot]) [1,H,Nq,N]; with a key padding mask [B,H,Nq,N]
  at::Tensor position_attention() const {
    return masked_softmax(
        groups->scatter(terms.position.index_select(0, groups->slot).unsqueeze(1)));
  }

  at::Tensor gate() const { return at::sigmoid(terms.gate).view({1, -1, 1, 1}); }
};

// Numbers [count,B,H] of each group as [B,H,Nq,N]; zeros where there is no pair.
at::Tensor to_map(const Context& context, const std::vector<at::Tensor>& by_group) {
  if (by_group.empty())
    return at::zeros({context.queries, context.tokens, context.batch, context.call.heads},
                     context.options)
        .permute({2, 3, 0, 1});
  return context.groups->scatter(at::cat(by_group));
}

at::Tensor relative_scores(const Context& context) {  // [B,H,Nq,N]
  std::vector<at::Tensor> scores;
  for (const PairGroup& group : context.groups->groups)
    scores.push_back(pair_dot(group, context.q.encode(group.slot, group.queries),
                              context.k.encode(context.key_row(group), group.keys),
                              context.call.heads));
  const auto map = to_map(context, scores);
  context.sums.add_pairs(map.permute({2, 3, 0, 1}));
  return map;
}

at::Tensor all_scores(const Context& context) {  // [B,H,Nq,N]
  const auto& [terms, call] = std::tie(context.terms, context.call);
  auto scores =
      terms.q.defined()
          ? at::matmul(context.heads_of(terms.q), context.heads_of(terms.k).transpose(-1, -2))
                .mul_(call.scale)
          : at::zeros({context.batch, call.heads, context.queries, context.tokens},
                      context.options);
  if (context.relative_scores()) scores = scores + relative_scores(context) * call.scale;
  if (terms.bias.defined())
    scores = scores +
             context.groups->scatter(terms.bias.index_select(0, context.groups->slot).unsqueeze(1));
  return scores;
}

at::Tensor apply_gate(const Context& context, const at::Tensor& attention) {
  if (!context.terms.gate.defined()) return attention;
  const auto gate = context.gate();
  return (1 - gate) * attention + gate * context.position_attention();
}

at::Tensor apply_keep(const AttentionCall& call, const at::Tensor& weights) {
  return call.keep.defined() ? weights * call.keep : weights;
}

at::Tensor relative_values(const Context& context, const at::Tensor& weights) {  // [B,Nq,S]
  const auto pair_weights = context.groups->gather(weights);
  const auto rows_of = [&](const PairGroup& group) {
    return pair_mix(group, pair_weights.narrow(0, group.begin, group.count),
                    context.v.encode(group.slot, group.keys));
  };
  const auto tokens_first =
      context.groups->sum(context.batch, context.v.width(), context.options, rows_of);
  context.sums.add({tokens_first});
  return tokens_first.transpose(0, 1);
}

// Adds the gradients of the value side; returns the gradient of the weights [B,H,Nq,N].
at::Tensor relative_values_backward(Context& context, const at::Tensor& d_out,
                                    const at::Tensor& weights) {
  const auto pair_weights = context.groups->gather(weights);
  const auto d_tokens = d_out.transpose(0, 1);  // [Nq,B,S]
  std::vector<at::Tensor> d_weights;
  for (const PairGroup& group : context.groups->groups) {
    const auto [d_pair, dv] = pair_mix_backward(group, d_tokens.index_select(0, group.queries),
                                                pair_weights.narrow(0, group.begin, group.count),
                                                context.v.encode(group.slot, group.keys));
    d_weights.push_back(d_pair);
    context.v.add_gradient(group.slot, group.keys, dv);
  }
  const auto map = to_map(context, d_weights);
  context.sums.add_pairs(map.permute({2, 3, 0, 1}));
  return map;
}

void relative_scores_backward(Context& context, const at::Tensor& d_scores) {
  const auto d_pairs = context.groups->gather(d_scores).mul_(context.call.scale);
  for (const PairGroup& group : context.groups->groups) {
    const auto [dq, dk] = pair_dot_backward(group, d_pairs.narrow(0, group.begin, group.count),
                                            context.q.encode(group.slot, group.queries),
                                            context.k.encode(context.key_row(group), group.keys));
    context.q.add_gradient(group.slot, group.queries, dq);
    context.k.add_gradient(context.key_row(group), group.keys, dk);
  }
}

// The gradient of a table [M,H] that is read once per pair: the sum of d [A,H,Nq,N] by slot.
at::Tensor sum_by_slot(const Context& context, const at::Tensor& d, const at::Tensor& table) {
  return at::zeros_like(table).index_add_(0, context.groups->slot,
                                          context.groups->gather(d).sum(1));
}

at::Tensor softmax_backward(const at::Tensor& d, const at::Tensor& probabilities) {
  return probabilities * (d - (d * probabilities).sum(-1, /*keepdim=*/true));
}

// The map has any strides, and nothing is saved for backward.
AttentionResult forward(const AttentionTerms& terms, const AttentionCall& call,
                        const AttentionSizes& size) {
  const Context context(terms, call, size);
  const auto attention = context.masked_softmax(all_scores(context));
  const auto weights = apply_keep(call, apply_gate(context, attention));
  AttentionResult result;
  result.attention = attention.detach();
  result.kept = at::empty({0}, context.options);
  result.out = terms.v.defined()
                   ? join_heads(at::matmul(context.operand(weights), context.heads_of(terms.v)))
                   : at::empty({0}, context.options);
  result.relative_out = context.v.present() ? relative_values(context, weights).contiguous()
                                            : at::empty({0}, context.options);
  return result;
}

TermGradients backward(const OutputGradients& d, const AttentionTerms& terms,
                       const AttentionCall& call, int64_t requested) {
  const int64_t joined = (requested & kJoinK ? int64_t{1} << kRelK : 0) |
                         (requested & kJoinV ? int64_t{1} << kRelV : 0);
  const int64_t needs = requested | joined;
  const auto needs_grad = [needs](int term) { return ((needs >> term) & 1) != 0; };
  Context context(terms, call, sizes_of(terms, call));
  const auto attention = d.attention.contiguous();
  context.q.begin_backward(needs_grad(kRelQ), needs_grad(kTableQ));
  context.k.begin_backward(needs_grad(kRelK), needs_grad(kTableK));
  context.v.begin_backward(needs_grad(kRelV), needs_grad(kTableV));
  const auto weights = apply_keep(call, apply_gate(context, attention));
  TermGradients grads;

  auto d_weights = at::zeros_like(attention);
  if (terms.v.defined() && d.out.defined()) {
    const auto d_heads = context.heads_of(d.out);
    d_weights = at::matmul(d_heads, context.heads_of(terms.v).transpose(-1, -2));
    if (needs_grad(kV))
      grads[kV] = join_heads(at::matmul(context.operand(weights).transpose(-1, -2), d_heads));
  }
  if (context.v.present() && d.relative_out.defined())
    d_weights = d_weights + relative_values_backward(context, d.relative_out, weights);

  auto d_attention = apply_keep(call, d_weights);
  if (terms.gate.defined()) {
    const auto gate = context.gate();
    const auto position = context.position_attention();
    if (needs_grad(kGate))
      grads[kGate] = ((d_attention * (position - attention)).sum(at::IntArrayRef{0, 2, 3}) *
                      (gate * (1 - gate)).view(-1));
    if (needs_grad(kPosition))
      grads[kPosition] = sum_by_slot(
          context, softmax_backward((d_attention * gate).sum_to_size(position.sizes()), position),
          terms.position);
    d_attention = d_attention * (1 - gate);
  }

  const auto d_scores = softmax_backward(d_attention, attention);
  if (terms.q.defined()) {
    const auto factor = context.operand(d_scores);
    if (needs_grad(kQ))
      grads[kQ] = join_heads(at::matmul(factor, context.heads_of(terms.k))).mul_(call.scale);
    if (needs_grad(kK))
      grads[kK] = join_heads(at::matmul(factor.transpose(-1, -2), context.heads_of(terms.q)))
                      .mul_(call.scale);
  }
  if (terms.bias.defined() && needs_grad(kBias))
    grads[kBias] = sum_by_slot(context, d_scores, terms.bias);
  if (context.relative_scores()) relative_scores_backward(context, d_scores);
  grads[kRelQ] = context.q.dx(), grads[kTableQ] = context.q.dtable();
  grads[kRelK] = context.k.dx(), grads[kTableK] = context.k.dtable();
  grads[kRelV] = context.v.dx(), grads[kTableV] = context.v.dtable();
  for (const int term : {kRelK, kRelV}) {
    if (!((joined >> term) & 1)) continue;
    grads[kRelQ] = grads[kRelQ] + grads[term];
    grads[term] = at::Tensor();
  }
  context.sums.add_defined({&grads[kRelQ], &grads[kRelK], &grads[kRelV]});
  return grads;
}

}  // namespace

AttentionResult attention_plain(const AttentionTerms& terms, const AttentionCall& call,
                                const AttentionSizes& size) {
  return compute_in_float32(terms, call,
                            [&](const auto& t, const auto& c) { return forward(t, c, size); });
}

AttentionResult attention_portable(const AttentionTerms& terms, const AttentionCall& call,
                                   const AttentionSizes& size) {
  auto result = attention_plain(terms, call, size);
  const auto options = result.attention.options();
  result.attention = empty_map(terms, call, size, options).copy_(result.attention);
  result.kept =
      at::empty_symint({kept_numbers(terms, call, size)},
                       multiplies_bf16(terms, call) ? options.dtype(at::kBFloat16) : options);
  return result;
}

TermGradients attention_backward_portable(const OutputGradients& d, const AttentionTerms& terms,
                                          const AttentionCall& call, int64_t needs) {
  return gradients_in_float32(d, terms, call, [&](const auto& grads, const auto& t, const auto& c) {
    return backward(grads, t, c, needs);
  });
}

at::Tensor gated_attention(const at::Tensor& attention, const AttentionTerms& terms,
                           const AttentionCall& call) {
  const auto& given = multiplies_bf16(terms, call) ? in_float32(terms) : terms;
  return apply_gate(Context(given, call, sizes_of(given, call)), attention);
}

}  // namespace translution
