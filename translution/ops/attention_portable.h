#pragma once

#include "translution/ops/attention_impl.h"

namespace translution {

/// `translution::attention` in plain LibTorch calls, slot by slot, for checked terms on any device
/// and in any float type. The largest tensors are [B,H,Nq,N] and the tokens of one slot, [N,B,C].
/// Backward encodes again: `kept` has the shape that the fused kernels give it, but no contents.
AttentionResult attention_portable(const AttentionTerms& terms, const AttentionCall& call,
                                   const AttentionSizes& size);

/// The same in plain form (ops/plain_form.h), with another layout of the map and nothing kept.
AttentionResult attention_plain(const AttentionTerms& terms, const AttentionCall& call,
                                const AttentionSizes& size);

/// Bit t of `needs` requests the gradient of term t.
TermGradients attention_backward_portable(const OutputGradients& d, const AttentionTerms& terms,
                                          const AttentionCall& call, int64_t needs);

/// Applies the gate to `attention`: the weights of the values before dropout.
at::Tensor gated_attention(const at::Tensor& attention, const AttentionTerms& terms,
                           const AttentionCall& call);

}  // namespace translution
