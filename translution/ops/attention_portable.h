#pragma once

#include "translution/ops/attention_impl.h"

namespace translution {

/// `translution::attention` in plain LibTorch calls, slot by slot, for checked terms: any device,
/// any float type. Largest tensors: [B,H,Nq,N] and those of one slot's tokens, [N,B,C]. Encodings
/// are made again in backward: `kept` has the shape that the fused kernels give it, and no
/// contents.
AttentionResult attention_portable(const AttentionTerms& terms, const AttentionCall& call,
                                   const AttentionSizes& size);

/// `needs`: bit t asks for the gradient of term t.
TermGradients attention_backward_portable(const OutputGradients& d, const AttentionTerms& terms,
                                          const AttentionCall& call, int64_t needs);

/// The weights with which values are summed before dropout: gate applied to `attention`.
at::Tensor gated_attention(const at::Tensor& attention, const AttentionTerms& terms,
                           const AttentionCall& call);

}  // namespace translution
