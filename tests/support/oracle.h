#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "translution/core/offsets.h"
#include "translution/core/position.h"
#include "translution/ops/attention.h"
#include "translution/ops/methods.h"

/// The reference for all tests: the paper's equations as loops over doubles, written so that they
/// can be compared with the paper. They do not compute with LibTorch, and slots are derived from
/// coordinates, not from OffsetTable.
namespace translution::oracle {

/// Which token attends to which, and the table rows of each pair.
struct Pairing {
  int64_t tokens = 0;
  int64_t slots = 0;
  std::vector<int64_t> slot, key_slot;  ///< [N * N]; -1: i does not attend to j
};

/// Offsets delta = p_i - p_j of a grid, numbered as documented in core/offsets.h.
Pairing pair_grid(const OffsetOptions& options);
/// A custom relation [N * N]; the key slot is mirror[slot].
Pairing pair_relation(const std::vector<int64_t>& relation, int64_t tokens,
                      const std::vector<int64_t>& mirror);
/// Every pair, for methods without slots.
Pairing pair_all(int64_t tokens);

/// The arguments of every method other than its weights.
struct Call {
  Pairing pairing;
  int64_t heads = 1;
  bool causal = false;
  std::vector<int64_t> rows;  ///< empty: all tokens
  at::Tensor keep;            ///< [B,H,Nq,N] or undefined
  at::Tensor mask;            ///< key padding, bool [B,N], true for a token; undefined: none
  std::vector<int64_t>
      rotary_grid;  ///< grid of the rotation of shared queries and keys; empty: none
  bool rotary_cls = false;
};

at::Tensor translution(const at::Tensor& x, const RoleWeights& weights, const Call& call);
at::Tensor alpha_translution(const at::Tensor& x, const AlphaWeights& weights, const Call& call,
                             Mixing mixing);
at::Tensor self_attention(const at::Tensor& x, const RoleWeights& weights,
                          const PositionTerms& terms, const Call& call);
at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const Call& call);
/// Rotates x [B,N,heads * D] on a grid; with `cls`, token 0 is a class token.
at::Tensor rotary(const at::Tensor& x, const std::vector<int64_t>& grid, bool cls, int64_t heads);
/// The core op as defined in ops/attention.h. Returns {out, relative_out}, undefined if absent.
std::pair<at::Tensor, at::Tensor> attention(const AttentionTerms& terms, double scale,
                                            const Call& call);

}  // namespace translution::oracle
