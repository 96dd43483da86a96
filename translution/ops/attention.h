#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "translution/core/export.h"
#include "translution/core/pairs.h"
#include "translution/core/precision.h"
#include "translution/ops/runtime.h"

namespace translution {

/// The terms that make up every method of the family. An undefined tensor means that the term is
/// absent.
///
///   score_ij = scale * (q_i . k_j + Q_ij . K_ij) + bias[s]      per head, s = slot of (i, j)
///   a_ij     = softmax_j(score_ij)                             over the tokens j of the mask
///   w_ij     = (1 - g) a_ij + g softmax_j(position[s])          g = sigmoid(gate); else w = a
///   out_i    = sum_j keep_ij w_ij v_j
///   relative_out_i = sum_j keep_ij w_ij V_ij
///
/// Q_ij, K_ij, V_ij are the relative sides. A side with features x and a table of matrices is
/// x W[slot]. With features alone it is x. With a table of vectors alone it is the vector of the
/// slot. Q reads x at i, K and V read it at j. All tables are indexed by `slot`, except key
/// matrices, which are indexed by `key_slot`: the slot of the mirrored offset, if it has one.
struct AttentionTerms {
  at::Tensor q, k, v;         ///< [B,Nq,E], [B,N,E], [B,N,F]; E, F are multiples of heads
  at::Tensor rel_q, table_q;  ///< [B,Nq,C], [M,C,R] or [M,R]
  at::Tensor rel_k, table_k;  ///< [B,N,C],  [M,C,R] or [M,R]
  at::Tensor rel_v, table_v;  ///< [B,N,C],  [M,C,S] or [M,S]
  at::Tensor bias;            ///< [M,H]
  at::Tensor position, gate;  ///< [M,H], [H]
};

/// The arguments of an attention other than its terms.
struct TRANSLUTION_API AttentionCall {
  PairsName pairs;  ///< the token pairs and their slots; x gives the number of tokens
  int64_t heads = 1;
  double scale = 1.0;    ///< set by the methods of ops/methods.h
  at::Tensor keep = {};  ///< [B,H,Nq,N]: dropout mask, 0 or 1/(1-p)
  /// Key padding, bool [B,N]: true for a token, false for padding, which no query attends to.
  /// `attention` needs finite keys and values of padding. The methods replace its features by 0.
  at::Tensor mask = {};
  /// Rotary angles [N,D/2]. The methods of ops/methods.h rotate shared queries and keys by them.
  at::Tensor angles = {};
  bool map = false;  ///< the methods also return the attention map
  /// How pairwise scores are stored: [Nq,N,H,B] instead of [Nq,N,B,H]. Set by `attention`.
  bool batch_last = false;
  /// Bytes of encoded queries and keys that forward may save for backward. If they do not fit,
  /// backward encodes again. The result is the same.
  int64_t workspace = runtime().workspace();
  /// The type in which operands are multiplied. bfloat16 tensors are multiplied in bfloat16 with
  /// either precision.
  Precision precision = Precision::float32;
  /// The group (ops/group.h) that has the other parts of the slots, if `pairs` have a part.
  /// Relative terms are of the pairs of this part; what they give is summed over the group.
  std::string group = {};
};

struct AttentionResult {
  at::Tensor out;           ///< [B,Nq,F]; empty without v
  at::Tensor relative_out;  ///< [B,Nq,S]; empty without relative values
  /// [B,H,Nq,N]: a_ij, before gate and dropout; carries no gradient. Float32 for bfloat16 terms.
  at::Tensor attention;
  at::Tensor kept = {};  ///< encoded queries and keys saved for backward; empty if none
};

/// The registered op `translution::attention`: checks its arguments, then runs the implementation
/// for the device. Differentiable in every term. A query without pairs, or whose
/// keys are all padding, gives zeros.
TRANSLUTION_API AttentionResult attention(const AttentionTerms& terms, const AttentionCall& call);

/// Draws the dropout mask of a call on x [B,N,C] from `generator`, or from the default generator if
/// it is undefined. Returns an undefined tensor for p = 0.
TRANSLUTION_API at::Tensor dropout_mask(double p, const at::Tensor& x, const AttentionCall& call,
                                        const at::Generator& generator = {});

}  // namespace translution
