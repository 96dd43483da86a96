#include "translution/ops/attention_fused.h"

#include <ATen/ATen.h>

#include "translution/ops/large.h"
#include "translution/ops/runs.h"

namespace translution {
namespace {

at::TensorOptions options_of(const AttentionTerms& terms) {
  return (terms.k.defined() ? terms.k : terms.rel_k).options();
}

std::vector<char> open_pairs(const AttentionSetting& setting, const AttentionSizes& size) {
  std::vector<char> open(size.queries * size.tokens, setting.runs.defined() ? 0 : 1);
  if (setting.runs.defined())
    for (const Run& run : runs_from_tensor(setting.runs))
      for (int64_t t = 0; t < run.length; ++t)
        open[(run.i + t * run.di) * size.tokens + run.j + t * run.dj] = 1;
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
      options(options_of(terms)),
      open(open_pairs(setting, size)) {}

at::Tensor FusedCall::new_maps() const {
  return large_empty({size.batch, size.heads, size.queries, size.tokens}, options);
}

at::Tensor FusedCall::new_lanes() const {
  return large_zeros({size.queries, size.tokens, size.batch, size.heads}, options);
}

}  // namespace translution
