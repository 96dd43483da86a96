#pragma once

#include <array>

#include "translution/ops/attention.h"

namespace translution {

// Shared by all implementations of `attention`.

/// Indices of the terms: the order in the op's list, in its gradients, and in the bits of `needs`.
enum Term { kQ, kK, kV, kRelQ, kTableQ, kRelK, kTableK, kRelV, kTableV, kBias, kPosition, kGate };

inline constexpr at::Tensor AttentionTerms::*kTermFields[] = {
    &AttentionTerms::q,       &AttentionTerms::k,        &AttentionTerms::v,
    &AttentionTerms::rel_q,   &AttentionTerms::table_q,  &AttentionTerms::rel_k,
    &AttentionTerms::table_k, &AttentionTerms::rel_v,    &AttentionTerms::table_v,
    &AttentionTerms::bias,    &AttentionTerms::position, &AttentionTerms::gate,
};
inline constexpr int kTermCount = sizeof(kTermFields) / sizeof(kTermFields[0]);

/// Further bits of `needs`: rel_k (rel_v) is the same tensor as rel_q, so its gradient is added to
/// that of rel_q. This saves an accumulator and a sum when all roles are relative.
inline constexpr int64_t kJoinK = int64_t{1} << kTermCount;
inline constexpr int64_t kJoinV = int64_t{1} << (kTermCount + 1);

/// One gradient per term; undefined if not requested.
using TermGradients = std::array<at::Tensor, kTermCount>;

/// The inputs of backward that belong to the outputs.
struct OutputGradients {
  at::Tensor out, relative_out;  ///< gradients; undefined if there is none
  at::Tensor attention, kept;    ///< saved by forward
};

/// Sizes derived from checked terms. They may be symbolic.
struct AttentionSizes {
  c10::SymInt batch, queries, tokens;
  int64_t heads;
  c10::SymInt out_width, relative_width;  ///< 0 if that output is absent
};

AttentionSizes sizes_of(const AttentionTerms& terms, const AttentionCall& call);

/// Throws c10::Error if the terms do not fit together. The message states in one line what was
/// expected and what was given.
AttentionSizes check_attention(const AttentionTerms& terms, const AttentionCall& call);

/// Returns whether operands are multiplied in bfloat16.
bool multiplies_bf16(const AttentionTerms& terms, const AttentionCall& call);

/// Converts terms, dropout mask and gradients to float32, from which bfloat16 operands are rounded.
/// Matrices per slot keep their type.
AttentionTerms in_float32(const AttentionTerms& terms);
AttentionCall in_float32(AttentionCall call);
OutputGradients in_float32(const OutputGradients& d);

/// Type and device of the outputs: those of v, or else of the relative values.
at::TensorOptions output_options(const AttentionTerms& terms);

/// Calls compute(terms, call). If products are bfloat16, the terms are converted with in_float32,
/// and the outputs are converted back.
template <typename Compute>
AttentionResult compute_in_float32(const AttentionTerms& terms, const AttentionCall& call,
                                   const Compute& compute) {
  if (!multiplies_bf16(terms, call)) return compute(terms, call);
  auto result = compute(in_float32(terms), in_float32(call));
  const auto type = c10::typeMetaToScalarType(output_options(terms).dtype());
  for (auto* output : {&result.out, &result.relative_out}) *output = output->to(type);
  return result;
}

/// The same for compute(d, terms, call), which returns gradients.
template <typename Compute>
TermGradients gradients_in_float32(const OutputGradients& d, const AttentionTerms& terms,
                                   const AttentionCall& call, const Compute& compute) {
  if (!multiplies_bf16(terms, call)) return compute(d, terms, call);
  auto grads = compute(in_float32(d), in_float32(terms), in_float32(call));
  for (int t = 0; t < kTermCount; ++t)
    if (grads[t].defined()) grads[t] = grads[t].to((terms.*kTermFields[t]).scalar_type());
  return grads;
}

/// Returns whether the table holds a vector per slot instead of a matrix.
inline bool is_vectors(const at::Tensor& table) { return table.defined() && table.dim() == 2; }

/// Returns whether there are relative sides with features. If so, scores are stored pair by pair,
/// with all samples and heads of a pair together ("lanes"). Otherwise they are stored as maps
/// [B,H,Nq,N].
inline bool is_pairwise(const AttentionTerms& terms) {
  return (terms.rel_q.defined() && !is_vectors(terms.table_k)) || terms.rel_v.defined();
}

/// The largest number of channels of any relative feature row or table.
int64_t relative_width(const AttentionTerms& terms);

/// Returns whether lanes should be [Nq,N,H,B] instead of [Nq,N,B,H]: if relative rows are too
/// narrow to fill vectors with channels, and the batch is large enough to fill them with samples. A
/// symbolic batch counts as large: a graph has one layout for all batch sizes. The terms may be
/// unchecked.
bool prefers_batch_last(const AttentionTerms& terms);

/// Returns whether lanes are [Nq,N,H,B] in this call.
bool is_batch_last(const AttentionTerms& terms, const AttentionCall& call);

/// The number of elements of encoded queries and keys that forward saves, a function of the sizes
/// alone. 0 if they do not fit into the workspace, or if encoding again is faster.
c10::SymInt kept_numbers(const AttentionTerms& terms, const AttentionCall& call,
                         const AttentionSizes& size);

/// An uninitialised map [B,H,Nq,N] with the strides of the op's result.
at::Tensor empty_map(const AttentionTerms& terms, const AttentionCall& call,
                     const AttentionSizes& size, const at::TensorOptions& options);

/// The pairs of a checked call.
std::shared_ptr<const Pairs> pairs_of(const AttentionCall& call, int64_t tokens);

}  // namespace translution
