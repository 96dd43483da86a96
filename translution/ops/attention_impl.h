#pragma once

#include <array>

#include "translution/ops/attention.h"

namespace translution {

// What every implementation of `attention` shares.

/// The terms by number: the order of the op's list, of its gradients, and of the bits of `needs`.
enum Term { kQ, kK, kV, kRelQ, kTableQ, kRelK, kTableK, kRelV, kTableV, kBias, kPosition, kGate };

inline constexpr at::Tensor AttentionTerms::*kTermFields[] = {
    &AttentionTerms::q,       &AttentionTerms::k,        &AttentionTerms::v,
    &AttentionTerms::rel_q,   &AttentionTerms::table_q,  &AttentionTerms::rel_k,
    &AttentionTerms::table_k, &AttentionTerms::rel_v,    &AttentionTerms::table_v,
    &AttentionTerms::bias,    &AttentionTerms::position, &AttentionTerms::gate,
};
inline constexpr int kTermCount = sizeof(kTermFields) / sizeof(kTermFields[0]);

/// Beside the bits of the terms in `needs`: rel_k (rel_v) is the same tensor as rel_q, so its
/// gradient is added to that of rel_q. Saves an accumulator and a sum for the full operation.
inline constexpr int64_t kJoinK = int64_t{1} << kTermCount;
inline constexpr int64_t kJoinV = int64_t{1} << (kTermCount + 1);

/// One gradient per term; undefined where not asked for.
using TermGradients = std::array<at::Tensor, kTermCount>;

/// What backward is given of the outputs: their gradients, undefined where they have none, and what
/// forward has left for it.
struct OutputGradients {
  at::Tensor out, relative_out;
  at::Tensor attention, kept;
};

/// Sizes that follow from checked terms. They may be symbolic where only shapes are known.
struct AttentionSizes {
  c10::SymInt batch, queries, tokens;
  int64_t heads;
  c10::SymInt out_width, relative_width;  ///< 0 where that output is absent
};

AttentionSizes sizes_of(const AttentionTerms& terms, const AttentionCall& call);

/// Refuses terms that do not fit together, in one line that says what was expected and what came.
AttentionSizes check_attention(const AttentionTerms& terms, const AttentionCall& call);

/// Are operands of products bfloat16?
bool multiplies_bf16(const AttentionTerms& terms, const AttentionCall& call);

/// What products of bfloat16 are made from: terms, mask and gradients as float32. Matrices per slot
/// stay what they are.
AttentionTerms in_float32(const AttentionTerms& terms);
AttentionCall in_float32(AttentionCall call);
OutputGradients in_float32(const OutputGradients& d);

/// Type and device of the outputs: those of what values are made of.
at::TensorOptions output_options(const AttentionTerms& terms);

/// compute(terms, call) on such terms where products are bfloat16, and outputs in the type of the
/// terms that came.
template <typename Compute>
AttentionResult compute_in_float32(const AttentionTerms& terms, const AttentionCall& call,
                                   const Compute& compute) {
  if (!multiplies_bf16(terms, call)) return compute(terms, call);
  auto result = compute(in_float32(terms), in_float32(call));
  const auto type = c10::typeMetaToScalarType(output_options(terms).dtype());
  for (auto* output : {&result.out, &result.relative_out}) *output = output->to(type);
  return result;
}

/// The same for gradients.
template <typename Compute>
TermGradients gradients_in_float32(const OutputGradients& d, const AttentionTerms& terms,
                                   const AttentionCall& call, const Compute& compute) {
  if (!multiplies_bf16(terms, call)) return compute(d, terms, call);
  auto grads = compute(in_float32(d), in_float32(terms), in_float32(call));
  for (int t = 0; t < kTermCount; ++t)
    if (grads[t].defined()) grads[t] = grads[t].to((terms.*kTermFields[t]).scalar_type());
  return grads;
}

/// Is a table one of vectors per slot, not of matrices?
inline bool is_vectors(const at::Tensor& table) { return table.defined() && table.dim() == 2; }

/// Are there relative sides with features? Then scores lie pair by pair, all samples of a pair
/// together ("lanes"), and else as maps [B,H,Nq,N].
inline bool is_pairwise(const AttentionTerms& terms) {
  return (terms.rel_q.defined() && !is_vectors(terms.table_k)) || terms.rel_v.defined();
}

/// Channels of the widest relative row.
int64_t relative_width(const AttentionTerms& terms);

/// Lanes are [Nq,N,B,H], or [Nq,N,H,B] where relative rows are too narrow to fill vectors with
/// their channels and there are samples to fill them with.
bool is_batch_last(const AttentionTerms& terms, const c10::SymInt& batch);

/// Numbers that forward keeps of encoded queries and keys: a function of the sizes alone. 0 where
/// they do not fit into the workspace or are not worth keeping.
c10::SymInt kept_numbers(const AttentionTerms& terms, const AttentionCall& call,
                         const AttentionSizes& size);

/// The map [B,H,Nq,N] of a result, not filled, in the order of memory that results have.
at::Tensor empty_map(const AttentionTerms& terms, const AttentionSizes& size,
                     const at::TensorOptions& options);

/// The pairs of a checked call.
std::shared_ptr<const Pairs> pairs_of(const AttentionCall& call, int64_t tokens);

}  // namespace translution
