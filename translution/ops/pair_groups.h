#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "translution/core/pairs.h"

namespace translution {

/// All pairs of one slot (and one key slot), ready for plain LibTorch calls.
///
/// `matching`: no token stands twice on either side, as for grid offsets; then `queries` and
/// `keys` name the pairs one by one. Otherwise they name each token once, and the pairs are places
/// in the queries x keys block (`block`): a slot with many pairs per token costs one projection
/// per token, never one per pair.
struct PairGroup {
  int64_t slot, key_slot;
  bool matching;
  at::Tensor queries, keys;  ///< [U], [V] int64 token indices
  at::Tensor block;          ///< [count] int64: u * V + v; only where not matching
  int64_t begin, count;      ///< the group's pairs in pair order
};

/// The pairs of an attention that have a slot, group after group ("pair order").
struct PairGroups {
  std::vector<PairGroup> groups;
  at::Tensor place;   ///< [P]: i * N + j of each pair
  at::Tensor slot;    ///< [P]: slot of each pair
  at::Tensor closed;  ///< [Nq,N] bool: pairs left out; undefined if there are none
  int64_t queries, tokens;

  /// [A,H,Nq,N] -> [P,A,H]
  at::Tensor gather(const at::Tensor& dense) const;
  /// [P,A,H] -> [A,H,Nq,N]; zero where there is no pair
  at::Tensor scatter(const at::Tensor& values) const;
};

/// The groups with their index tensors on `device`; made once.
std::shared_ptr<const PairGroups> group_pairs(const Pairs& pairs, at::Device device);

/// Per-head dot product of each pair of the group. q [U,B,E], k [V,B,E] -> [count,B,H].
at::Tensor pair_dot(const PairGroup& group, const at::Tensor& q, const at::Tensor& k,
                    int64_t heads);
/// Gradients of pair_dot: d_dot [count,B,H] -> {dq [U,B,E], dk [V,B,E]}.
std::pair<at::Tensor, at::Tensor> pair_dot_backward(const PairGroup& group, const at::Tensor& d_dot,
                                                    const at::Tensor& q, const at::Tensor& k);
/// Sums values v [V,B,F] into the group's queries with weights [count,B,H] -> [U,B,F].
at::Tensor pair_mix(const PairGroup& group, const at::Tensor& weights, const at::Tensor& v);
/// Gradients of pair_mix: d_out [U,B,F] -> {d_weights [count,B,H], dv [V,B,F]}.
std::pair<at::Tensor, at::Tensor> pair_mix_backward(const PairGroup& group, const at::Tensor& d_out,
                                                    const at::Tensor& weights, const at::Tensor& v);

}  // namespace translution
