#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"
#include "translution/core/position.h"
#include "translution/ops/attention.h"

namespace translution {

struct MethodResult {
  at::Tensor out;  ///< [B, Nq, heads * D]
  at::Tensor map;  ///< [B, heads, Nq, N] as used for the sum, before dropout; only if asked for
};

/// One weight for each role: [M, C, heads * D] is relative, [C, heads * D] shared by all offsets.
struct RoleWeights {
  at::Tensor q, k, v;
};

/// Translution, for any subset of relative roles:
///   q_ij = x_i Wq[s]   k_ji = x_j Wk[s']   v_ij = x_j Wv[s]       s, s' = slot, key slot of (i, j)
///   out_i = sum_j softmax_j(q_ij . k_ji / sqrt(D)) v_ij
/// x [B,N,C]. Cost: B*N*N*C*heads*D multiply-adds per relative role.
TRANSLUTION_API MethodResult translution(const at::Tensor& x, const RoleWeights& weights,
                                         const AttentionCall& call);

/// Weights of alpha-Translution. A relative role has a table, from r1 to r2 channels; the others go
/// to r2 at once. Either width is split among the heads like any other.
struct AlphaWeights {
  RoleWeights shared;  ///< [C, heads * D] each, or all undefined
  RoleWeights down;    ///< [C, r1], or [C, r2] without a table
  RoleWeights table;   ///< [M, r1, r2]; undefined: that role is the same for all offsets
  at::Tensor up;       ///< [r2, heads * D], back from the small space of the values
};

/// alpha-Translution in the form that sums values in the small space and expands once:
///   score_ij = (x_i Wq . x_j Wk + x_i Dq Tq[s] . x_j Dk Tk[s']) / sqrt(D)
///   out_i = sum_j a_ij x_j Wv + (sum_j a_ij x_j Dv Tv[s]) U
/// The small part of scores is there if q or k is relative, that of values if v is; without shared
/// weights both are always there.
TRANSLUTION_API MethodResult alpha_translution(const at::Tensor& x, const AlphaWeights& weights,
                                               const AttentionCall& call,
                                               Mixing mixing = Mixing::sum);

/// Position in plain self-attention: each term may be absent.
struct PositionTerms {
  at::Tensor key_vectors;     ///< [M, heads * D], added to the keys (after any rotation)
  at::Tensor value_vectors;   ///< [M, heads * D], added to the values
  at::Tensor bias;            ///< [M, heads], added to the scores
  at::Tensor position, gate;  ///< [M, heads], [heads]: positional attention mixed in by a gate
  RoleWeights biases;         ///< [heads * D] each, added to q, k and v; all or none
};

/// Self-attention with weights [C, heads * D] and any of the position terms.
TRANSLUTION_API MethodResult self_attention(const at::Tensor& x, const RoleWeights& weights,
                                            const PositionTerms& terms, const AttentionCall& call);

}  // namespace translution
