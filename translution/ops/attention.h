#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "translution/core/export.h"
#include "translution/core/pairs.h"
#include "translution/core/precision.h"
#include "translution/ops/runtime.h"

namespace translution {

/// The parts from which every method of the family is made; a part that is undefined is absent.
///
///   score_ij = scale * (q_i . k_j + Q_ij . K_ij) + bias[s]      per head, s = slot of (i, j)
///   a_ij     = softmax_j(score_ij)
///   w_ij     = (1 - g) a_ij + g softmax_j(position[s])          g = sigmoid(gate); else w = a
///   out_i    = sum_j keep_ij w_ij v_j
///   relative_out_i = sum_j keep_ij w_ij V_ij
///
/// Q_ij, K_ij, V_ij are the relative sides. A side with features x and a table of matrices is
/// x W[slot]; with features alone it is x; with a table of vectors alone it is that vector.
/// Q takes x at i, K and V at j. Tables are read at `slot`, but key matrices at `key_slot`: a
/// vector is numbered by the offset, a key by the offset as the key sees it.
struct AttentionTerms {
  at::Tensor q, k, v;         ///< [B,Nq,E], [B,N,E], [B,N,F]; E, F are multiples of heads
  at::Tensor rel_q, table_q;  ///< [B,Nq,C], [M,C,R] or [M,R]
  at::Tensor rel_k, table_k;  ///< [B,N,C],  [M,C,R] or [M,R]
  at::Tensor rel_v, table_v;  ///< [B,N,C],  [M,C,S] or [M,S]
  at::Tensor bias;            ///< [M,H]
  at::Tensor position, gate;  ///< [M,H], [H]
};

/// What an attention takes beside its terms.
struct TRANSLUTION_API AttentionCall {
  PairsName pairs;  ///< which tokens meet, and their slots; the number of tokens comes from x
  int64_t heads = 1;
  double scale = 1.0;    ///< set by the methods of ops/methods.h
  at::Tensor keep = {};  ///< [B,H,Nq,N]: dropout mask, 0 or 1/(1-p)
  /// Rotary angles [N,D/2] for queries and keys that are not relative; the methods turn them.
  at::Tensor angles = {};
  bool map = false;  ///< the methods also give the weights that values are summed with
  /// Bytes that forward may keep of encoded queries and keys for backward; what does not fit is
  /// encoded again. The result is the same.
  int64_t workspace = runtime().workspace();
  /// Tensors that are bfloat16 themselves are multiplied as such in either.
  Precision precision = Precision::float32;
};

struct AttentionResult {
  at::Tensor out;           ///< [B,Nq,F]; empty where there is no v
  at::Tensor relative_out;  ///< [B,Nq,S]; empty where there is no relative value
  /// [B,H,Nq,N]: a_ij, before gate and dropout; carries no gradient. Float32 beside bfloat16.
  at::Tensor attention;
  at::Tensor kept = {};  ///< encoded queries and keys for backward; empty where none were kept
};

/// The registered op `translution::attention`: checks, then the implementation for the device.
/// Differentiable in every term. A row that sees no token gives zeros.
TRANSLUTION_API AttentionResult attention(const AttentionTerms& terms, const AttentionCall& call);

/// The dropout mask of a call on x [B,N,C], drawn from `generator`, or from the process's where it
/// is undefined; undefined for p = 0.
TRANSLUTION_API at::Tensor dropout_mask(double p, const at::Tensor& x, const AttentionCall& call,
                                        const at::Generator& generator = {});

}  // namespace translution
