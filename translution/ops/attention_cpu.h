#pragma once

#include "translution/ops/attention_impl.h"

namespace translution {

/// Can the fused kernels compute these terms? Float or double on the CPU; relative sides with
/// features without bias, gate or vectors beside them, and vectors of keys and values where
/// rel_q has no table of its own. That is all that the methods ask for; everything else takes the
/// portable path. TRANSLUTION_IMPL=portable turns them off.
bool fused_supports(const AttentionTerms& terms);

/// `translution::attention` with the fused CPU kernels. With relative matrices, `attention` is
/// stored pair by pair and seen as [B,H,Nq,N].
/// `kept` receives the encoded queries and keys if they fit into setting.workspace bytes, else an
/// empty tensor: backward then encodes them again.
AttentionResult attention_fused(const AttentionTerms& terms, const AttentionSetting& setting);

/// As attention_backward_portable; `kept` as attention_fused returned it.
TermGradients attention_backward_fused(const at::Tensor& d_out, const at::Tensor& d_relative_out,
                                       const at::Tensor& attention, const at::Tensor& kept,
                                       const AttentionTerms& terms, const AttentionSetting& setting,
                                       int64_t needs);

}  // namespace translution
