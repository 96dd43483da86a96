#include "translution/ops/attention.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "translution/ops/attention_fused.h"
#include "translution/ops/attention_op.h"
#include "translution/ops/attention_portable.h"
#include "translution/ops/compat.h"
#include "translution/ops/register.h"

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors to_tensors(const AttentionTerms& terms) {
  Tensors tensors;
  for (const auto field : kTermFields) tensors.push_back(terms.*field);
  return tensors;
}

AttentionTerms to_terms(const Tensors& tensors) {
  AttentionTerms terms;
  for (int t = 0; t < kTermCount; ++t) terms.*kTermFields[t] = tensors[t];
  return terms;
}

OptionalTensorList to_list(const AttentionTerms& terms) {
  OptionalTensorList list;
  for (const auto field : kTermFields) list.push_back(optional(terms.*field));
  return list;
}

[[gnu::always_inline]] inline AttentionResult call_forward(const AttentionTerms& terms,
                                                           const AttentionCall& call) {
  static const Op<AttentionForward> op("translution::attention");
  auto [out, relative_out, map, kept] =
      op(to_list(terms), call.pairs.text, call.pairs.grid, call.pairs.rows, call.heads, call.scale,
         optional(call.keep), optional(call.mask), name_of(kPrecisions, call.precision), call.group,
         call.batch_last, call.workspace);
  return {std::move(out), std::move(relative_out), std::move(map), std::move(kept)};
}

std::vector<at::Tensor> call_backward(const OutputGradients& d, const AttentionTerms& terms,
                                      const AttentionCall& call, int64_t needs) {
  static const Op<AttentionBackward> op("translution::attention_backward");
  return op(optional(d.out), optional(d.relative_out), d.attention, d.kept, needs, to_list(terms),
            call.pairs.text, call.pairs.grid, call.pairs.rows, call.heads, call.scale,
            optional(call.keep), optional(call.mask), name_of(kPrecisions, call.precision),
            call.group, call.batch_last);
}

// --- implementations

AttentionResult forward_portable(const AttentionTerms& terms, const AttentionCall& call) {
  return attention_portable(terms, call, check_attention(terms, call));
}

AttentionResult forward_plain(const AttentionTerms& terms, const AttentionCall& call) {
  TORCH_CHECK(call.group.empty(), "attention: forward mode and second derivatives need all slots ",
              "in one process, got a part of them");
  return attention_plain(terms, call, check_attention(terms, call));
}

AttentionResult forward_meta(const AttentionTerms& terms, const AttentionCall& call) {
  const auto size = check_attention(terms, call);
  const auto options = output_options(terms);
  const auto output = [&](const c10::SymInt& width) {
    return width > 0 ? at::empty_symint({size.batch, size.queries, width}, options)
                     : at::empty({0}, options);
  };
  const bool bf16 = multiplies_bf16(terms, call);
  return {output(size.out_width), output(size.relative_width),
          empty_map(terms, call, size, bf16 ? options.dtype(at::kFloat) : options),
          at::empty_symint({kept_numbers(terms, call, size)},
                           bf16 ? options.dtype(at::kBFloat16) : options)};
}

TermGradients backward_meta(const OutputGradients&, const AttentionTerms& terms,
                            const AttentionCall&, int64_t needs) {
  TermGradients grads;
  for (int t = 0; t < kTermCount; ++t)
    if ((needs >> t) & 1) grads[t] = empty_of(terms.*kTermFields[t]);
  return grads;
}

// The gradients of the plain form. The attention that was saved is not used: it depends on the
// terms, too.
TermGradients backward_plain(const OutputGradients& d, const AttentionTerms& terms,
                             const AttentionCall& call, int64_t needs) {
  const auto forward = [&](const Tensors& given) {
    auto t = to_terms(given);
    if (needs & kJoinK) t.rel_k = t.rel_q;
    if (needs & kJoinV) t.rel_v = t.rel_q;
    const auto result = forward_plain(t, call);
    return Tensors{result.out, result.relative_out};
  };
  std::vector<bool> wanted;
  for (int t = 0; t < kTermCount; ++t) wanted.push_back((needs >> t) & 1);
  const auto found = plain_gradients(forward, to_tensors(terms), {d.out, d.relative_out}, wanted);
  TermGradients grads;
  for (int t = 0; t < kTermCount; ++t)
    if (wanted[t]) grads[t] = found[t].defined() ? found[t] : at::zeros_like(terms.*kTermFields[t]);
  return grads;
}

// --- autograd

int64_t find_joins(const AttentionTerms& t) {
  if (!t.rel_q.defined()) return 0;
  return (t.rel_k.is_same(t.rel_q) ? kJoinK : 0) | (t.rel_v.is_same(t.rel_q) ? kJoinV : 0);
}

// Terms that share a tensor: requests one gradient for all of them.
int64_t joined(int64_t needs, int64_t joins) {
  if (!((needs >> kRelQ) & 1)) return needs;
  if (joins & kJoinK) needs &= ~(int64_t{1} << kRelK);
  if (joins & kJoinV) needs &= ~(int64_t{1} << kRelV);
  return needs | joins;
}

int64_t needed_terms(const BackwardCall& b, int64_t joins) {
  int64_t needs = 0;
  for (int t = 0; t < kTermCount; ++t)
    if (b.needs[t]) needs |= int64_t{1} << t;
  needs = joined(needs, joins);
  return b.d[0].defined() ? needs : needs & ~(int64_t{1} << kV);  // v affects `out` only
}

// The gradients of the terms. b.saved are the terms, keep, mask, attention and kept; `call` has
// neither keep nor mask.
Tensors gradients_of(const BackwardCall& b, AttentionCall call, int64_t joins) {
  const auto terms = to_terms(b.saved);
  call.keep = b.saved[kTermCount], call.mask = b.saved[kTermCount + 1];
  const bool relative = terms.rel_v.defined() || terms.table_v.defined();
  const int64_t needs = needed_terms(b, joins);
  auto grads =
      call_backward({terms.v.defined() ? b.d[0] : at::Tensor(), relative ? b.d[1] : at::Tensor(),
                     b.saved[kTermCount + 2], b.saved[kTermCount + 3]},
                    terms, call, needs);
  for (int t = 0; t < kTermCount; ++t)
    if (!((needs >> t) & 1)) grads[t] = at::Tensor();
  return grads;
}

AttentionResult attention_autograd(const AttentionTerms& terms, const AttentionCall& call) {
  auto tensors = to_tensors(terms);
  const Differentiable node("attention", tensors);
  const auto result = node.below([&] { return call_forward(terms, call); });
  tensors.insert(tensors.end(), {call.keep, call.mask, result.attention, result.kept});
  auto saved_call = call;
  saved_call.keep = saved_call.mask = at::Tensor();  // are among the saved tensors
  node.finish({result.out, result.relative_out}, tensors,
              [saved_call, joins = find_joins(terms)](const BackwardCall& b) {
                return gradients_of(b, saved_call, joins);
              });
  return result;
}

}  // namespace

AttentionResult attention(const AttentionTerms& terms, const AttentionCall& call) {
  const auto any = [&](bool (*holds)(const at::Tensor&)) {
    return std::any_of(std::begin(kTermFields), std::end(kTermFields),
                       [&](const auto field) { return holds(terms.*field); });
  };
  TORCH_CHECK(any([](const at::Tensor& t) { return t.defined(); }),
              "attention: expected terms, got none; pass q, k and v, or relative terms");
  const bool needs_grad = at::GradMode::is_enabled() &&
                          any([](const at::Tensor& t) { return t.defined() && t.requires_grad(); });
  auto chosen = call;
  chosen.batch_last = prefers_batch_last(terms);
  if (!needs_grad) chosen.workspace = 0;  // there is no backward to save encodings for
  return call_forward(terms, chosen);
}

at::Tensor dropout_mask(double p, const at::Tensor& x, const AttentionCall& call,
                        const at::Generator& generator) {
  TORCH_CHECK(p >= 0 && p < 1, "dropout: expected a probability in [0, 1), got ", p);
  if (p == 0) return {};
  TORCH_CHECK(x.defined() && x.dim() == 3, "dropout: expected x [B, N, C]");
  const auto& rows = call.pairs.rows;
  const auto tokens = x.sym_size(1);
  const auto queries = rows.empty() ? tokens : c10::SymInt(static_cast<int64_t>(rows.size()));
  // Made from x, so that vmap gives each sample a mask of its own.
  return x
      .new_empty_symint({x.sym_size(0), call.heads, queries, tokens},
                        call.precision == Precision::bf16 ? at::kFloat : x.scalar_type())
      .bernoulli_(1 - p, optional(generator))
      .div_(1 - p);
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<AttentionForward>(
      m, kAttentionForward,
      {forward_op<forward_portable>, attention_cpu(), forward_op<forward_meta>,
       forward_op<attention_autograd>, forward_op<forward_plain>});
  register_op<AttentionBackward>(
      m, kAttentionBackward,
      {backward_op<attention_backward_portable>, attention_backward_cpu(),
       backward_op<backward_meta>, nullptr, backward_op<backward_plain>});
}

}  // namespace translution
