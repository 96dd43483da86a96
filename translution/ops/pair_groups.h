#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "translution/core/pairs.h"

namespace translution {

/// All pairs of one slot (and one key slot), as index tensors for plain LibTorch calls.
///
/// A group is `matching` if no token occurs twice on either side, as for grid offsets. Then
/// `queries` and `keys` list the pairs one by one. Otherwise they list each token once, and `block`
/// holds the indices of the pairs in the queries x keys block. So a slot with many pairs per token
/// costs one projection per token, not one per pair.
struct PairGroup {
  int64_t slot, key_slot;
  bool matching;
  at::Tensor queries, keys;  ///< [U], [V] int64 token indices
  at::Tensor block;          ///< [count] int64: u * V + v; only if not matching
  int64_t begin, count;      ///< range of the group's pairs in pair order
};

/// The pairs of an attention that have a slot, sorted by group ("pair order").
struct PairGroups {
  std::vector<PairGroup> groups;
  at::Tensor index;   ///< [P]: i * N + j of each pair
  at::Tensor slot;    ///< [P]: slot of each pair
  at::Tensor closed;  ///< [Nq,N] bool: pairs left out of the attention; undefined if none
  int64_t queries, tokens;

  /// [A,H,Nq,N] -> [P,A,H]
  at::Tensor gather(const at::Tensor& dense) const;
  /// [P,A,H] -> [A,H,Nq,N]; zero where there is no pair
  at::Tensor scatter(const at::Tensor& values) const;
  /// The sum over the groups of rows_of(group) [U,B,F], the rows of its queries: [Nq,B,F]
  at::Tensor sum(int64_t batch, int64_t width, const at::TensorOptions& options,
                 const std::function<at::Tensor(const PairGroup&)>& rows_of) const;
};

/// The groups with their index tensors on `device`. Computed once per `pairs` and device.
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
