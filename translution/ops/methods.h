#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"
#include "translution/core/position.h"
#include "translution/ops/attention.h"

namespace translution {

struct MethodResult {
  at::Tensor out;  ///< [B, Nq, heads * D]
  at::Tensor map;  ///< [B, heads, Nq, N]: weights of the values before dropout; only if call.map
};

/// One weight for each role: [M, C, heads * D] is relative, [C, heads * D] shared by all offsets.
struct RoleWeights {
  at::Tensor q, k, v;
};

/// The features [..., C] with a constant channel of ones at the end, [..., C + 1]. The last row of
/// a matrix that multiplies them is a bias.
TRANSLUTION_API at::Tensor with_constant(const at::Tensor& x);

/// Translution, for any subset of relative roles:
///   q_ij = x_i Wq[s]   k_ji = x_j Wk[s']   v_ij = x_j Wv[s]       s, s' = slot, key slot of (i, j)
///   out_i = sum_j softmax_j(q_ij . k_ji / sqrt(D)) v_ij
/// x [B,N,C]. Cost: B*N*N*C*heads*D multiply-adds per relative role.
/// Biases: a table [M, C + 1, heads * D] has the bias of each slot as its last row; a shared weight
/// has a vector [heads * D] in `biases`.
TRANSLUTION_API MethodResult translution(const at::Tensor& x, const RoleWeights& weights,
                                         const AttentionCall& call, const RoleWeights& biases = {});

/// Weights of alpha-Translution. A relative role has a table from r1 to r2 channels; `down` maps
/// the other roles directly to r2. Both r1 and r2 are multiples of the number of heads.
struct AlphaWeights {
  RoleWeights shared;  ///< [C, heads * D] each, or all undefined
  RoleWeights down;    ///< [C, r1], or [C, r2] without a table
  RoleWeights table;   ///< [M, r1, r2]; undefined for a role that does not depend on the offset
  at::Tensor up;       ///< [r2, heads * D]; expands the values from the small space
  RoleWeights biases = {};  ///< [heads * D] each, added to the shared q, k and v; all or none
};

/// alpha-Translution. Sums values in the small space and expands them once per query:
///   score_ij = (x_i Wq . x_j Wk + x_i Dq Tq[s] . x_j Dk Tk[s']) / sqrt(D)
///   out_i = sum_j a_ij x_j Wv + (sum_j a_ij x_j Dv Tv[s]) U
/// The scores have a small part if q or k is relative, the values if v is relative. Without shared
/// weights both have one.
TRANSLUTION_API MethodResult alpha_translution(const at::Tensor& x, const AlphaWeights& weights,
                                               const AttentionCall& call,
                                               Mixing mixing = Mixing::sum);

/// Position terms of plain self-attention. An undefined tensor means that the term is absent.
struct PositionTerms {
  at::Tensor key_vectors;     ///< [M, heads * D], added to the keys (after any rotation)
  at::Tensor value_vectors;   ///< [M, heads * D], added to the values
  at::Tensor bias;            ///< [M, heads], added to the scores
  at::Tensor position, gate;  ///< [M, heads], [heads]: gated positional attention
  RoleWeights biases;         ///< [heads * D] each, added to q, k and v; all or none
};

/// Self-attention with weights [C, heads * D] and any of the position terms.
TRANSLUTION_API MethodResult self_attention(const at::Tensor& x, const RoleWeights& weights,
                                            const PositionTerms& terms, const AttentionCall& call);

}  // namespace translution
