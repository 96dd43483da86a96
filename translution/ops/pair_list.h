#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "translution/core/export.h"

namespace translution {

/// Pairs of tokens, "query gathers from key", as a list: for point clouds, whose tokens have no
/// grid. Rows of all clouds are packed one after another. A pair of points lies between lattice
/// points, its taps: their slots, and how much of each it takes.
struct PairList {
  at::Tensor query, key;  ///< int64 [E], query in ascending order
  at::Tensor slots, phi;  ///< int64 and float [E,T]; undefined if no encoding depends on positions
};

/// An encoding of tokens that the functions below read: rows [S,W], and where they are.
///   places undefined   row t belongs to token t; no taps
///   places [R,M]       sum_t phi[e,t] * rows[places[token, slots[e,t]]]; each row belongs to one
///                      token. -1: there is no such row, and the tap is left out
///   places [1,M]       the same, and all tokens share the rows
struct EncodedRows {
  at::Tensor rows;
  at::Tensor places{};  ///< int64
};

// `heads` groups of channels share a row. All have gradients for encodings and phi. Nothing of size
// E*W is ever allocated, and the bits do not depend on the number of threads.

/// out[e,h] = q_e[h] . k_e[h], where q is read at the query and k at the key.
TRANSLUTION_API at::Tensor pair_scores(const EncodedRows& q, const EncodedRows& k,
                                       const PairList& pairs, int64_t heads);

/// Softmax of scale * scores [E,H] over the pairs of each query.
TRANSLUTION_API at::Tensor pair_softmax(const at::Tensor& scores, const at::Tensor& query,
                                        c10::SymInt tokens, double scale);

/// out[i,h] = sum over the pairs e of query i of weights[e,h] * v_e[h], [tokens,W]. v is read at
/// the key.
TRANSLUTION_API at::Tensor pair_mix(const at::Tensor& weights, const EncodedRows& v,
                                    const PairList& pairs, c10::SymInt tokens);

}  // namespace translution
