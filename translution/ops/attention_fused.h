#pragma once

#include <type_traits>
#include <vector>

#include "translution/ops/attention_impl.h"

namespace translution {

// What the parts of the CPU implementation share: softmax, content and slots each have a file.

/// One call: its terms and sizes, and which of its pairs are attended to.
struct FusedCall {
  FusedCall(const AttentionTerms& terms, const AttentionSetting& setting);

  const AttentionTerms& terms;
  const AttentionSetting& setting;
  const AttentionSizes size;
  const at::TensorOptions options;
  std::vector<char> open;  ///< [Nq*N]: 1 where row i may see token j
  int64_t needs = 0;       ///< backward: which gradients

  bool wants(int term) const { return ((needs >> term) & 1) != 0; }
  /// A lane of a pair, or the item whose map it lies in: one sample and head.
  int64_t lane_count() const { return size.batch * size.heads; }
  int64_t pair_count() const { return size.queries * size.tokens; }

  at::Tensor new_maps() const;   ///< [B,H,Nq,N], not filled
  at::Tensor new_lanes() const;  ///< [Nq,N,B,H], zeros
};

template <typename T>
T* data(const at::Tensor& x) {
  return x.defined() && x.numel() > 0 ? x.data_ptr<T>() : nullptr;
}

inline at::Tensor contiguous(const at::Tensor& x) { return x.defined() ? x.contiguous() : x; }

}  // namespace translution
