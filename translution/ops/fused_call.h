#pragma once

#include <type_traits>

#include "translution/kernels/bf16.h"
#include "translution/kernels/content.h"
#include "translution/ops/attention_impl.h"

namespace translution {

// What the parts of the fused implementation share: softmax, content, vectors and slots each have a
// file.

/// One call: its terms and sizes, and which of its pairs are attended to. With products of bfloat16
/// the terms are float32, but for matrices per slot, which may be either.
struct FusedCall {
  FusedCall(const AttentionTerms& terms, const AttentionCall& call, const AttentionSizes& size,
            int64_t needs);

  const AttentionTerms& terms;
  const AttentionCall& call;
  const int64_t batch, queries, tokens, heads;
  const int64_t out_width;  ///< of the values v; 0 without them
  const at::TensorOptions options;
  const std::shared_ptr<const Pairs> pairs;
  const int64_t needs;  ///< backward: which gradients
  const bool pairwise;  ///< scores are lanes
  const bool batch_last;
  const bool bf16;  ///< are operands of products bfloat16?

  bool key_vectors() const { return is_vectors(terms.table_k); }
  bool value_vectors() const { return is_vectors(terms.table_v); }
  bool needs_grad(int term) const { return ((needs >> term) & 1) != 0; }
  /// A lane of a pair, or the item whose map it lies in: one sample and head.
  int64_t lane_count() const { return batch * heads; }
  int64_t pair_count() const { return queries * tokens; }

  at::Tensor new_maps() const;   ///< [B,H,Nq,N], not filled
  at::Tensor new_lanes() const;  ///< zeros where a pair has no slot, else not filled
  at::Tensor as_lanes(const at::Tensor& map) const;  ///< [B,H,Nq,N] as lanes
  at::Tensor as_map(const at::Tensor& lanes) const;  ///< the same numbers as [B,H,Nq,N]
};

template <typename T>
T* data(const at::Tensor& x) {
  if (!x.defined() || x.numel() == 0) return nullptr;
  if constexpr (std::is_same_v<T, kernels::Bf16>)
    return static_cast<T*>(x.data_ptr());
  else
    return x.data_ptr<T>();
}

inline at::Tensor contiguous(const at::Tensor& x) { return x.defined() ? x.contiguous() : x; }

/// Features whose rows the kernels can read: as they are, or else a copy.
at::Tensor readable(const at::Tensor& x);

template <typename T>
kernels::Features<T> features(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {data<std::remove_const_t<T>>(x), x.stride(0), x.stride(1)};
}

}  // namespace translution
