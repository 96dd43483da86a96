#include "translution/ops/attention_fused.h"

#include <ATen/ATen.h>

#include "translution/ops/large.h"
#include "translution/ops/runs.h"

namespace translution {
namespace {

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
      open(open_pairs(slots, setting, size)) {}

at::Tensor readable(const at::Tensor& x) {
  const bool in_order = x.defined() && x.stride(2) == 1 && x.stride(1) >= x.size(2);
  return in_order ? x : contiguous(x);
}

at::Tensor FusedCall::new_maps() const {
  return large_empty({size.batch, size.heads, size.queries, size.tokens}, options);
}

at::Tensor FusedCall::new_lanes() const {
  return large_zeros({size.queries, size.tokens, size.batch, size.heads}, options);
}

}  // namespace translution
