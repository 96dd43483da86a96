#include "translution/ops/attention_cpu.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include "translution/ops/attention_content.h"
#include "translution/ops/attention_relative.h"
#include "translution/ops/attention_softmax.h"
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
  const FusedSoftmax<T> softmax(call);
  AttentionResult result;
  auto scores = content.scores();  // [B,H,Nq,N]; undefined without content
  if (relative.present()) {
    auto lanes = relative.scores(result.kept);  // [Nq,N,B,H]
    if (scores.defined()) content.add_maps(scores, call.setting.scale, lanes);
    softmax.on_lanes(lanes);
    result.attention = lanes.permute({2, 3, 0, 1});
  } else {
    softmax.on_maps(scores);
    result.attention = scores;
  }
  if (!result.kept.defined()) result.kept = at::empty({0}, call.options);
  const auto weights = with_keep(call.setting, result.attention);
  result.out = content.values(weights);
  result.relative_out = relative.values(weights);
  return result;
}

template <typename T>
TermGradients backward(const FusedCall& call, const at::Tensor& d_out,
                       const at::Tensor& d_relative_out, const at::Tensor& attention,
                       const at::Tensor& kept) {
  const FusedContent<T> content(call);
  FusedRelative<T> relative(call);
  const FusedSoftmax<T> softmax(call);
  const auto& [terms, keep] = std::tie(call.terms, call.setting.keep);
  TermGradients grads;
  const auto weights = with_keep(call.setting, attention);
  at::Tensor d_maps;
  if (terms.v.defined()) d_maps = content.values_backward(weights, d_out, grads[kV]);
  if (!relative.present()) {
    if (keep.defined()) d_maps.mul_(keep);
    softmax.on_maps_backward(attention.contiguous(), d_maps, grads[kBias]);
    content.scores_backward(d_maps, grads[kQ], grads[kK]);
    return grads;
  }
  auto d_lanes = relative.values_backward(weights, d_relative_out, grads);
  if (d_maps.defined()) content.add_maps(d_maps, 1, d_lanes);
  if (keep.defined()) d_lanes.mul_(pair_major(keep));
  softmax.on_lanes_backward(pair_major(attention), d_lanes);
  if (terms.q.defined())
    content.scores_backward(content.to_maps(d_lanes.permute({2, 3, 0, 1})), grads[kQ], grads[kK]);
  relative.scores_backward(d_lanes, kept, grads);
  return grads;
}

}  // namespace

bool fused_supports(const AttentionTerms& terms) {
  if (!kernels_wanted() || terms.gate.defined()) return false;
  for (const auto& table : {terms.table_q, terms.table_k, terms.table_v})
    if (table.defined() && table.dim() == 2) return false;
  const bool relative = terms.rel_q.defined() || terms.rel_v.defined();
  const auto& some = terms.k.defined() ? terms.k : terms.rel_k;
  return !(relative && terms.bias.defined()) && some.size(0) > 0 &&
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
    grads = backward<scalar_t>(call, d_out, d_relative_out, attention, kept);
  });
  return grads;
}

}  // namespace translution
