#include "translution/ops/attention_cpu.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include "translution/ops/attention_content.h"
#include "translution/ops/attention_relative.h"
#include "translution/ops/attention_softmax.h"
#include "translution/ops/attention_vectors.h"
#include "translution/ops/implementation.h"

namespace translution {
namespace {

at::Tensor with_keep(const AttentionSetting& setting, const at::Tensor& attention) {
  return setting.keep.defined() ? attention * setting.keep : attention;
}

template <typename T>
AttentionResult forward(const FusedCall& call) {
  const FusedContent<T> content(call);
  const FusedRelative<T> relative(call);
  const FusedVectors<T> vectors(call);
  const FusedSoftmax<T> softmax(call);
  AttentionResult result;
  auto scores = content.scores();  // [B,H,Nq,N]; undefined without content
  if (call.pairwise()) {
    auto lanes = relative.scores(result.kept);
    if (scores.defined())
      content.add_maps(scores, call.setting.scale, call.setting.scale, lanes);
    else if (call.setting.scale != 1)
      lanes.mul_(call.setting.scale);
    softmax.on_lanes(lanes);
    result.attention = call.as_map(lanes);
  } else {
    if (!scores.defined()) scores = call.new_maps().zero_();
    if (call.key_vectors()) vectors.add_scores(scores);
    softmax.on_maps(scores);
    result.attention = scores;
  }
  if (!result.kept.defined()) result.kept = at::empty({0}, call.options);
  const auto weights = with_keep(call.setting, softmax.gated(result.attention));
  result.out = content.values(weights);
  result.relative_out = call.value_vectors() ? vectors.values(weights) : relative.values(weights);
  return result;
}

// Scores as maps: without relative sides that have features.
template <typename T>
TermGradients backward_maps(const FusedCall& call, const at::Tensor& d_out,
                            const at::Tensor& d_relative_out, const at::Tensor& attention) {
  const FusedContent<T> content(call);
  const FusedVectors<T> vectors(call);
  const FusedSoftmax<T> softmax(call);
  const auto& [terms, keep] = std::tie(call.terms, call.setting.keep);
  TermGradients grads;
  const auto maps = attention.contiguous();
  const auto weights = with_keep(call.setting, softmax.gated(maps));
  auto d_maps = terms.v.defined() ? content.values_backward(weights, d_out, grads[kV])
                                  : call.new_maps().zero_();
  if (call.value_vectors())
    vectors.values_backward(weights, d_relative_out, d_maps, grads[kTableV]);
  if (keep.defined()) d_maps.mul_(keep);
  softmax.on_maps_backward(maps, d_maps, grads);
  if (terms.q.defined()) content.scores_backward(d_maps, grads[kQ], grads[kK]);
  if (call.key_vectors()) vectors.scores_backward(d_maps, grads[kRelQ], grads[kTableK]);
  return grads;
}

// Scores pair by pair.
template <typename T>
TermGradients backward_lanes(const FusedCall& call, const at::Tensor& d_out,
                             const at::Tensor& d_relative_out, const at::Tensor& attention,
                             const at::Tensor& kept) {
  const FusedContent<T> content(call);
  FusedRelative<T> relative(call);
  const FusedSoftmax<T> softmax(call);
  const auto& [terms, keep] = std::tie(call.terms, call.setting.keep);
  TermGradients grads;
  const auto weights = with_keep(call.setting, attention);
  auto d_lanes = relative.values_backward(weights, d_relative_out, grads);
  if (terms.v.defined())
    content.add_maps(content.values_backward(weights, d_out, grads[kV]), 1, 1, d_lanes);
  if (keep.defined()) d_lanes.mul_(call.as_lanes(keep));
  softmax.on_lanes_backward(call.as_lanes(attention).contiguous(), d_lanes);
  if (terms.q.defined())
    content.scores_backward(content.to_maps(call.as_map(d_lanes)), grads[kQ], grads[kK]);
  relative.scores_backward(d_lanes, kept, grads);
  return grads;
}

}  // namespace

bool fused_supports(const AttentionTerms& terms) {
  if (!kernels_wanted() || is_vectors(terms.table_q)) return false;
  const bool vectors = is_vectors(terms.table_k) || is_vectors(terms.table_v);
  if (is_vectors(terms.table_k) && terms.table_q.defined()) return false;
  const bool pairwise =
      (terms.rel_q.defined() && !is_vectors(terms.table_k)) || terms.rel_v.defined();
  if (pairwise && (vectors || terms.bias.defined() || terms.gate.defined())) return false;
  const auto& some = terms.q.defined() ? terms.q : terms.rel_q;
  return some.size(0) > 0 &&
         (some.scalar_type() == at::kFloat || some.scalar_type() == at::kDouble);
}

AttentionResult attention_fused(const AttentionTerms& terms, const AttentionSetting& setting) {
  const FusedCall call(terms, setting);
  AttentionResult result;
  AT_DISPATCH_FLOATING_TYPES(call.options.dtype().toScalarType(), "attention",
                             [&] { result = forward<scalar_t>(call); });
  return result;
}

TermGradients attention_backward_fused(const at::Tensor& d_out, const at::Tensor& d_relative_out,
                                       const at::Tensor& attention, const at::Tensor& kept,
                                       const AttentionTerms& terms, const AttentionSetting& setting,
                                       int64_t needs) {
  FusedCall call(terms, setting);
  call.needs = needs;
  TermGradients grads;
  AT_DISPATCH_FLOATING_TYPES(call.options.dtype().toScalarType(), "attention_backward", [&] {
    grads = call.pairwise() ? backward_lanes<scalar_t>(call, d_out, d_relative_out, attention, kept)
                            : backward_maps<scalar_t>(call, d_out, d_relative_out, attention);
  });
  return grads;
}

}  // namespace translution
