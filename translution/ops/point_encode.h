#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "translution/core/export.h"
#include "translution/core/precision.h"

namespace translution {

/// The rows of an encoding with taps: one for each slot and token that pairs read together.
struct SlotRows {
  at::Tensor places;  ///< int64 [R,M]: the row of each token and slot, or -1: see EncodedRows
  at::Tensor tokens;  ///< int64 [S]: the token of each row
  at::Tensor first;  ///< int64 [M+1]: rows first[m] … first[m+1] - 1 belong to matrix m, by token
};

/// The rows that pairs read at `token` [E] with the slots [E,T] of their taps; of `tokens` tokens
/// and `slots_in_all` slots. The first `mirrored` slots read the matrix of the opposite offset,
/// matrix `mirrored` - 1 - slot; others read their own. If phi [E,T] is given, taps whose phi is 0
/// need no row.
TRANSLUTION_API SlotRows slot_rows(const at::Tensor& slots, const at::Tensor& token, int64_t tokens,
                                   int64_t slots_in_all, int64_t mirrored = 0,
                                   const at::Tensor& phi = {});

/// Rows of tokens times the matrices of slots: out[s] = x[tokens[s]] table[m] for first[m] <= s <
/// first[m+1], x [R,C] and table [M,C,W]; [S,W].
TRANSLUTION_API at::Tensor point_encode(const at::Tensor& x, const at::Tensor& table,
                                        const SlotRows& rows,
                                        Precision precision = Precision::float32);

}  // namespace translution
