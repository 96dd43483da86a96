#pragma once

#include "translution/ops/attention_impl.h"

namespace translution {

/// `translution::attention` in plain LibTorch calls, slot by slot: any device, any float type.
/// Largest tensors: [B,H,Nq,N] and those of one slot's tokens, [N,B,C].
AttentionResult attention_portable(const AttentionTerms& terms, const AttentionSetting& setting);

/// `needs`: bit t asks for the gradient of term t. d_out and d_relative_out may be undefined.
TermGradients attention_backward_portable(const at::Tensor& d_out, const at::Tensor& d_relative_out,
                                          const at::Tensor& attention, const AttentionTerms& terms,
                                          const AttentionSetting& setting, int64_t needs);

/// The weights with which values are summed before dropout: gate applied to `attention`.
at::Tensor gated_attention(const at::Tensor& attention, const AttentionTerms& terms,
                           const AttentionSetting& setting);

}  // namespace translution
