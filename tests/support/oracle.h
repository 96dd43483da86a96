#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "translution/core/offsets.h"
#include "translution/core/position.h"
#include "translution/ops/attention.h"
#include "translution/ops/methods.h"

/// The definition of right: the paper's equations as loops over doubles, to be read against the
/// paper. Nothing here computes with LibTorch, and slots come from coordinates, not from
/// OffsetTable.
namespace translution::oracle {

/// Which token gathers from which, and which weight rows the pair reads.
struct Pairing {
  int64_t tokens = 0;
  int64_t slots = 0;
  std::vector<int64_t> slot, key_slot;  ///< [N * N]; -1: i does not gather from j
};

/// Offsets delta = p_i - p_j of a grid, numbered as core/offsets.h documents it.
Pairing pair_grid(const OffsetOptions& options);
/// The caller's relation [N * N], keys at mirror[slot].
Pairing pair_relation(const std::vector<int64_t>& relation, int64_t tokens,
                      const std::vector<int64_t>& mirror);
/// Every pair, for methods without slots.
Pairing pair_all(int64_t tokens);

/// What every method takes beside its weights.
struct Call {
  Pairing pairing;
  int64_t heads = 1;
  bool causal = false;
  std::vector<int64_t> rows;         ///< empty: all tokens
  at::Tensor keep;                   ///< [B,H,Nq,N] or undefined
  std::vector<int64_t> rotary_grid;  ///< not empty: shared queries and keys are rotated on it
  bool rotary_cls = false;
};

at::Tensor translution(const at::Tensor& x, const RoleWeights& weights, const Call& call);
at::Tensor alpha_translution(const at::Tensor& x, const AlphaWeights& weights, const Call& call,
                             Mixing mixing);
at::Tensor self_attention(const at::Tensor& x, const RoleWeights& weights,
                          const PositionTerms& terms, const Call& call);
at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const Call& call);
/// Rotates x [B,N,heads * D] of a grid, with a class token in front or not.
at::Tensor rotary(const at::Tensor& x, const std::vector<int64_t>& grid, bool cls, int64_t heads);
/// The core op as ops/attention.h defines it: {out, relative_out}, undefined where absent.
std::pair<at::Tensor, at::Tensor> attention(const AttentionTerms& terms, double scale,
                                            const Call& call);

}  // namespace translution::oracle
