#include "translution/ops/fused_call.h"

#include <ATen/ATen.h>

#include "translution/ops/large.h"

namespace translution {

FusedCall::FusedCall(const AttentionTerms& terms, const AttentionCall& call,
                     const AttentionSizes& size, int64_t needs)
    : terms(terms),
      call(call),
      batch(size.batch.expect_int()),
      queries(size.queries.expect_int()),
      tokens(size.tokens.expect_int()),
      heads(size.heads),
      out_width(size.out_width.expect_int()),
      options((terms.q.defined() ? terms.q : terms.rel_q).options()),
      pairs(pairs_of(call, tokens)),
      sums(call.group, pairs),
      needs(needs),
      pairwise(is_pairwise(terms)),
      batch_last(is_batch_last(terms, call)),
      bf16(multiplies_bf16(terms, call)) {}

at::Tensor readable(const at::Tensor& x) {
  const bool in_order = x.defined() && x.stride(2) == 1 && x.stride(1) >= x.size(2);
  return in_order ? x : contiguous(x);
}

at::Tensor FusedCall::new_maps() const {
  return large_empty({batch, heads, queries, tokens}, options);
}

at::Tensor FusedCall::new_lanes() const {
  auto lanes = batch_last ? large_empty({queries, tokens, heads, batch}, options)
                          : large_empty({queries, tokens, batch, heads}, options);
  if (!pairs->all_have_slots()) lanes.zero_();
  return lanes;
}

at::Tensor FusedCall::as_lanes(const at::Tensor& map) const {
  return batch_last ? map.permute({2, 3, 1, 0}) : map.permute({2, 3, 0, 1});
}

at::Tensor FusedCall::as_map(const at::Tensor& lanes) const {
  return batch_last ? lanes.permute({3, 2, 0, 1}) : lanes.permute({2, 3, 0, 1});
}

}  // namespace translution
