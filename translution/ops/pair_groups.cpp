#include "translution/ops/pair_groups.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

#include "translution/ops/constant.h"

namespace translution {
namespace {

struct Pair {
  int64_t slot, key_slot, i, j;
};

std::vector<Pair> sorted_pairs(const std::vector<PairSpan>& spans) {
  std::vector<Pair> pairs;
  for (const PairSpan& span : spans)
    for (int64_t t = 0; t < span.length; ++t)
      pairs.push_back({span.slot, span.key_slot, span.i + t * span.di, span.j + t * span.dj});
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return std::tie(a.slot, a.key_slot) < std::tie(b.slot, b.key_slot);
  });
  return pairs;
}

at::Tensor to_indices(const std::vector<int64_t>& values, at::Device device) {
  return at::tensor(values, at::kLong).to(device);
}

// The distinct values, ascending, and the index of each value among them.
std::pair<std::vector<int64_t>, std::vector<int64_t>> distinct(const std::vector<int64_t>& values) {
  std::vector<int64_t> unique = values;
  std::sort(unique.begin(), unique.end());
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  std::vector<int64_t> index;
  for (const int64_t value : values)
    index.push_back(std::lower_bound(unique.begin(), unique.end(), value) - unique.begin());
  return {unique, index};
}

PairGroup make_group(const Pair* first, const Pair* last, int64_t begin, at::Device device) {
  std::vector<int64_t> i, j;
  for (const Pair* pair = first; pair != last; ++pair) i.push_back(pair->i), j.push_back(pair->j);
  PairGroup group{first->slot, first->key_slot, true, {}, {}, {}, begin, last - first};
  const auto [queries, query_index] = distinct(i);
  const auto [keys, key_index] = distinct(j);
  group.matching = queries.size() == i.size() && keys.size() == j.size();
  if (group.matching) {
    group.queries = to_indices(i, device);
    group.keys = to_indices(j, device);
    return group;
  }
  std::vector<int64_t> block;
  for (size_t p = 0; p < i.size(); ++p)
    block.push_back(query_index[p] * static_cast<int64_t>(keys.size()) + key_index[p]);
  group.queries = to_indices(queries, device);
  group.keys = to_indices(keys, device);
  group.block = to_indices(block, device);
  return group;
}

at::Tensor rows_by_head(const at::Tensor& x, int64_t heads) {  // [U,B,E] -> [U,B,H,D]
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads});
}

at::Tensor per_head(const at::Tensor& x, int64_t heads) {  // [U,B,E] -> [B,H,U,D]
  return rows_by_head(x, heads).permute({1, 2, 0, 3});
}

at::Tensor rows_joined(const at::Tensor& x) {  // [B,H,U,D] -> [U,B,E]
  return x.permute({2, 0, 1, 3}).reshape({x.size(2), x.size(0), x.size(1) * x.size(3)});
}

// [count,B,H] -> [B,H,U,V], zero where the block has no pair of this group.
at::Tensor to_block(const PairGroup& group, const at::Tensor& values) {
  const int64_t U = group.queries.size(0), V = group.keys.size(0);
  auto block = values.new_zeros({U * V, values.size(1), values.size(2)});
  block.index_copy_(0, group.block, values);
  return block.view({U, V, values.size(1), values.size(2)}).permute({2, 3, 0, 1});
}

at::Tensor from_block(const PairGroup& group, const at::Tensor& block) {  // back again
  return block.permute({2, 3, 0, 1})
      .reshape({block.size(2) * block.size(3), block.size(0), block.size(1)})
      .index_select(0, group.block);
}

at::Tensor closed_pairs(const Pairs& pairs, at::Device device) {
  if (pairs.all_open()) return {};
  auto closed = at::empty({pairs.queries(), pairs.tokens()}, at::kBool);
  std::transform(pairs.open().begin(), pairs.open().end(), closed.data_ptr<bool>(),
                 [](char open) { return open == 0; });
  return closed.to(device);
}

PairGroups make_groups(const Pairs& pairs, at::Device device) {
  const OrdinaryTensors ordinary;  // they are held beyond this call
  const auto sorted = sorted_pairs(pairs.spans());
  PairGroups groups{{}, {}, {}, closed_pairs(pairs, device), pairs.queries(), pairs.tokens()};
  std::vector<int64_t> index, slot;
  for (const Pair& pair : sorted) {
    index.push_back(pair.i * pairs.tokens() + pair.j);
    slot.push_back(pair.slot);
  }
  groups.index = to_indices(index, device);
  groups.slot = to_indices(slot, device);
  const Pair* const end = sorted.data() + sorted.size();
  for (const Pair* first = sorted.data(); first != end;) {
    const Pair* last = first;
    while (last != end && last->slot == first->slot && last->key_slot == first->key_slot) ++last;
    groups.groups.push_back(make_group(first, last, first - sorted.data(), device));
    first = last;
  }
  return groups;
}

}  // namespace

std::shared_ptr<const PairGroups> group_pairs(const Pairs& pairs, at::Device device) {
  return pairs.derived<PairGroups>(static_cast<int64_t>(device.type()), device.index(),
                                   [&] { return make_groups(pairs, device); });
}

at::Tensor PairGroups::gather(const at::Tensor& dense) const {
  return dense.permute({2, 3, 0, 1})
      .reshape({queries * tokens, dense.size(0), dense.size(1)})
      .index_select(0, index);
}

at::Tensor PairGroups::scatter(const at::Tensor& values) const {
  auto dense = values.new_zeros({queries * tokens, values.size(1), values.size(2)});
  dense.index_copy_(0, index, values);
  return dense.view({queries, tokens, values.size(1), values.size(2)}).permute({2, 3, 0, 1});
}

at::Tensor PairGroups::sum(int64_t batch, int64_t width, const at::TensorOptions& options,
                           const std::function<at::Tensor(const PairGroup&)>& rows_of) const {
  at::Tensor sum;
  for (const PairGroup& group : groups) {
    const auto rows = rows_of(group);
    if (!sum.defined()) sum = rows.new_zeros({queries, batch, width});
    sum.index_add_(0, group.queries, rows);
  }
  return sum.defined() ? sum : at::zeros({queries, batch, width}, options);
}

at::Tensor pair_dot(const PairGroup& group, const at::Tensor& q, const at::Tensor& k,
                    int64_t heads) {
  if (group.matching) return rows_by_head(q * k, heads).sum(-1);
  return from_block(group, at::matmul(per_head(q, heads), per_head(k, heads).transpose(-1, -2)));
}

std::pair<at::Tensor, at::Tensor> pair_dot_backward(const PairGroup& group, const at::Tensor& d_dot,
                                                    const at::Tensor& q, const at::Tensor& k) {
  const int64_t heads = d_dot.size(2);
  if (group.matching) {
    const auto weight = d_dot.unsqueeze(-1);  // [count,B,H,1]
    return {(weight * rows_by_head(k, heads)).reshape_as(k),
            (weight * rows_by_head(q, heads)).reshape_as(q)};
  }
  const auto block = to_block(group, d_dot);  // [B,H,U,V]
  return {rows_joined(at::matmul(block, per_head(k, heads))),
          rows_joined(at::matmul(block.transpose(-1, -2), per_head(q, heads)))};
}

at::Tensor pair_mix(const PairGroup& group, const at::Tensor& weights, const at::Tensor& v) {
  const int64_t heads = weights.size(2);
  if (group.matching) return (weights.unsqueeze(-1) * rows_by_head(v, heads)).reshape_as(v);
  return rows_joined(at::matmul(to_block(group, weights), per_head(v, heads)));
}

std::pair<at::Tensor, at::Tensor> pair_mix_backward(const PairGroup& group, const at::Tensor& d_out,
                                                    const at::Tensor& weights,
                                                    const at::Tensor& v) {
  const int64_t heads = weights.size(2);
  if (group.matching)
    return {rows_by_head(d_out * v, heads).sum(-1),
            (weights.unsqueeze(-1) * rows_by_head(d_out, heads)).reshape_as(d_out)};
  const auto d_heads = per_head(d_out, heads);  // [B,H,U,D]
  return {from_block(group, at::matmul(d_heads, per_head(v, heads).transpose(-1, -2))),
          rows_joined(at::matmul(to_block(group, weights).transpose(-1, -2), d_heads))};
}

}  // namespace translution
