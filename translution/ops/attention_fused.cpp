#include "translution/ops/attention_fused.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "translution/kernels/gemm.h"
#include "translution/ops/large.h"
#include "translution/ops/runs.h"

namespace translution {
namespace {

constexpr int64_t kLeastLanes = 16;  // so many samples fill a vector

std::vector<int64_t> slots_of_pairs(const AttentionSetting& setting, const AttentionSizes& size) {
  if (!setting.runs.defined()) return {};
  std::vector<int64_t> slots(size.queries * size.tokens, -1);
  for (const Run& run : runs_from_tensor(setting.runs))
    for (int64_t t = 0; t < run.length; ++t)
      slots[(run.i + t * run.di) * size.tokens + run.j + t * run.dj] = run.slot;
  return slots;
}

std::vector<char> open_pairs(const std::vector<int64_t>& slots, const AttentionSetting& setting,
                             const AttentionSizes& size) {
  std::vector<char> open(size.queries * size.tokens, 1);
  for (size_t pair = 0; pair < slots.size(); ++pair) open[pair] = slots[pair] >= 0;
  if (!setting.causal) return open;
  const auto rows = setting.rows.defined() ? setting.rows.to(at::kCPU).contiguous() : at::Tensor();
  for (int64_t i = 0; i < size.queries; ++i) {
    const int64_t row = rows.defined() ? rows.data_ptr<int64_t>()[i] : i;
    for (int64_t j = row + 1; j < size.tokens; ++j) open[i * size.tokens + j] = 0;
  }
  return open;
}

}  // namespace

FusedCall::FusedCall(const AttentionTerms& terms, const AttentionSetting& setting)
    : terms(terms),
      setting(setting),
      size(attention_sizes(terms, setting)),
      options((terms.q.defined() ? terms.q : terms.rel_q).options()),
      slots(slots_of_pairs(setting, size)),
      open(open_pairs(slots, setting, size)),
      batch_last_(pairwise() && size.batch >= kLeastLanes &&
                  relative_width() < kernels::small_gemm_limit()) {}

int64_t FusedCall::relative_width() const {
  int64_t width = 1;
  for (const auto& tensor :
       {terms.rel_q, terms.rel_k, terms.rel_v, terms.table_q, terms.table_k, terms.table_v})
    if (tensor.defined()) width = std::max(width, tensor.size(-1));
  return width;
}

at::Tensor readable(const at::Tensor& x) {
  const bool in_order = x.defined() && x.stride(2) == 1 && x.stride(1) >= x.size(2);
  return in_order ? x : contiguous(x);
}

at::Tensor FusedCall::new_maps() const {
  return large_empty({size.batch, size.heads, size.queries, size.tokens}, options);
}

at::Tensor FusedCall::new_lanes() const {
  auto lanes = batch_last_
                   ? large_empty({size.queries, size.tokens, size.heads, size.batch}, options)
                   : large_empty({size.queries, size.tokens, size.batch, size.heads}, options);
  if (std::find(slots.begin(), slots.end(), -1) != slots.end()) lanes.zero_();
  return lanes;
}

at::Tensor FusedCall::as_lanes(const at::Tensor& map) const {
  return batch_last_ ? map.permute({2, 3, 1, 0}) : map.permute({2, 3, 0, 1});
}

at::Tensor FusedCall::as_map(const at::Tensor& lanes) const {
  return batch_last_ ? lanes.permute({3, 2, 0, 1}) : lanes.permute({2, 3, 0, 1});
}

}  // namespace translution
