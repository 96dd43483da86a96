#include "translution/ops/attention_fused.h"

#include <ATen/ATen.h>

#include "translution/ops/attention_portable.h"
#include "translution/ops/fused_content.h"
#include "translution/ops/fused_relative.h"
#include "translution/ops/fused_softmax.h"
#include "translution/ops/fused_vectors.h"
#include "translution/ops/large.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

template <typename T, typename P>
struct Types {
  using Number = T;
  using Passes = P;
};

at::Tensor with_keep(const FusedCall& call, const at::Tensor& attention) {
  const auto& keep = call.call.keep;
  return keep.defined() ? attention * keep : attention;
}

template <typename T, typename Passes>
AttentionResult forward(const FusedCall& call, int64_t kept_count) {
  const FusedContent<T> content(call);
  const FusedRelative<Passes> relative(call);
  const FusedVectors<T> vectors(call);
  const FusedSoftmax<T> softmax(call);
  AttentionResult result;
  result.kept =
      large_empty({kept_count}, call.bf16 ? call.options.dtype(at::kBFloat16) : call.options);
  auto scores = content.scores();  // [B,H,Nq,N]; undefined without content
  if (call.pairwise) {
    auto lanes = relative.scores(result.kept);
    if (scores.defined())
      content.add_maps(scores, call.call.scale, call.call.scale, lanes);
    else if (call.call.scale != 1)
      lanes.mul_(call.call.scale);
    softmax.on_lanes(lanes);
    result.attention = call.as_map(lanes);
  } else {
    if (!scores.defined()) scores = call.new_maps().zero_();
    if (call.key_vectors()) vectors.add_scores(scores);
    softmax.on_maps(scores);
    result.attention = scores;
  }
  const auto weights = with_keep(call, softmax.gated(result.attention));
  result.out = content.values(weights);
  result.relative_out = call.value_vectors() ? vectors.values(weights) : relative.values(weights);
  return result;
}

// Backward on maps, for calls without relative features.
template <typename T>
TermGradients backward_maps(const FusedCall& call, const OutputGradients& d) {
  const FusedContent<T> content(call);
  const FusedVectors<T> vectors(call);
  const FusedSoftmax<T> softmax(call);
  const auto& [terms, keep] = std::tie(call.terms, call.call.keep);
  TermGradients grads;
  const auto maps = d.attention.contiguous();
  const auto weights = with_keep(call, softmax.gated(maps));
  auto d_maps = terms.v.defined() ? content.values_backward(weights, d.out, grads[kV])
                                  : call.new_maps().zero_();
  if (call.value_vectors())
    vectors.values_backward(weights, d.relative_out, d_maps, grads[kTableV]);
  if (keep.defined()) d_maps.mul_(keep);
  softmax.on_maps_backward(maps, d_maps, grads);
  if (terms.q.defined()) content.scores_backward(d_maps, grads[kQ], grads[kK]);
  if (call.key_vectors()) vectors.scores_backward(d_maps, grads[kRelQ], grads[kTableK]);
  return grads;
}

// Backward on lanes, for pairwise calls.
template <typename T, typename Passes>
TermGradients backward_lanes(const FusedCall& call, const OutputGradients& d) {
  const FusedContent<T> content(call);
  FusedRelative<Passes> relative(call);
  const FusedSoftmax<T> softmax(call);
  const auto& [terms, keep] = std::tie(call.terms, call.call.keep);
  TermGradients grads;
  const auto weights = with_keep(call, d.attention);
  auto d_lanes = relative.values_backward(weights, d.relative_out, grads);
  // Content terms are of all pairs and the same in every process. Without them, a process needs
  // the pairs of its slots only, and the row sums of all.
  const bool all_pairs = terms.q.defined() || terms.v.defined();
  if (all_pairs && terms.rel_v.defined()) call.sums.add_pairs(d_lanes);
  if (terms.v.defined())
    content.add_maps(content.values_backward(weights, d.out, grads[kV]), 1, 1, d_lanes);
  if (keep.defined()) d_lanes.mul_(call.as_lanes(keep));
  softmax.on_lanes_backward(call.as_lanes(d.attention).contiguous(), d_lanes,
                            /*own_pairs=*/call.sums.needed() && !all_pairs);
  if (terms.q.defined())
    content.scores_backward(content.to_maps(call.as_map(d_lanes)), grads[kQ], grads[kK]);
  relative.scores_backward(d_lanes, d.kept, grads);
  return grads;
}

// Returns whether the kernels support these terms: float, double or bfloat16; relative features
// without bias, gate or vectors; key vectors only if rel_q has no table. This covers all methods of
// ops/methods.h.
bool is_fused(const AttentionTerms& terms, const AttentionCall& call) {
  if (!runtime().fused() || is_vectors(terms.table_q)) return false;
  const bool vectors = is_vectors(terms.table_k) || is_vectors(terms.table_v);
  if (is_vectors(terms.table_k) && terms.table_q.defined()) return false;
  if (is_pairwise(terms) && (vectors || terms.bias.defined() || terms.gate.defined())) return false;
  const auto& x = terms.q.defined() ? terms.q : terms.rel_q;
  return x.size(0) > 0 && (multiplies_bf16(terms, call) || x.scalar_type() == at::kFloat ||
                           x.scalar_type() == at::kDouble);
}

// Calls work(Types<T, Passes>()) with the number type and the slot passes of the call.
template <typename Work>
auto with_types(const FusedCall& call, const Work& work) {
  using kernels::Bf16LastPasses, kernels::Bf16RelativePasses, kernels::RelativePasses;
  if (call.options.dtype() == at::kDouble) return work(Types<double, RelativePasses<double>>{});
  if (call.bf16 && call.batch_last) return work(Types<float, Bf16LastPasses>{});
  if (call.bf16) return work(Types<float, Bf16RelativePasses>{});
  return work(Types<float, RelativePasses<float>>{});
}

AttentionResult forward_cpu(const AttentionTerms& given_terms, const AttentionCall& given_call) {
  const auto size = check_attention(given_terms, given_call);
  if (!is_fused(given_terms, given_call)) return attention_portable(given_terms, given_call, size);
  return compute_in_float32(given_terms, given_call, [&](const auto& terms, const auto& call) {
    const FusedCall fused(terms, call, size, /*needs=*/0);
    const int64_t kept = kept_numbers(given_terms, given_call, size).expect_int();
    return with_types(fused, [&](auto types) {
      using Of = decltype(types);
      return forward<typename Of::Number, typename Of::Passes>(fused, kept);
    });
  });
}

TermGradients backward_cpu(const OutputGradients& given_gradients,
                           const AttentionTerms& given_terms, const AttentionCall& given_call,
                           int64_t needs) {
  if (!is_fused(given_terms, given_call))
    return attention_backward_portable(given_gradients, given_terms, given_call, needs);
  const auto compute = [&](const auto& d, const auto& terms, const auto& call) {
    const FusedCall fused(terms, call, sizes_of(terms, call), needs);
    return with_types(fused, [&](auto types) {
      using Of = decltype(types);
      return fused.pairwise ? backward_lanes<typename Of::Number, typename Of::Passes>(fused, d)
                            : backward_maps<typename Of::Number>(fused, d);
    });
  };
  return gradients_in_float32(given_gradients, given_terms, given_call, compute);
}

}  // namespace

AttentionForward* attention_cpu() { return forward_op<forward_cpu>; }
AttentionBackward* attention_backward_cpu() { return backward_op<backward_cpu>; }

}  // namespace translution
