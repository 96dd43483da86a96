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

/// Sizes that follow from checked terms.
struct AttentionSizes {
  int64_t batch, queries, tokens, heads;
  int64_t out_width, relative_width;  ///< 0 where that output is absent
};
AttentionSizes attention_sizes(const AttentionTerms& terms, const AttentionSetting& setting);

/// Refuses terms that do not fit together, in one line that says what was wanted and what came.
AttentionSizes check_attention(const AttentionTerms& terms, const AttentionSetting& setting);

}  // namespace translution
