#pragma once

#include <type_traits>

#include "translution/kernels/bf16.h"
#include "translution/kernels/content.h"
#include "translution/ops/attention_impl.h"
#include "translution/ops/part_sums.h"

namespace translution {

// Shared by the parts of the fused implementation: fused_softmax, fused_content, fused_vectors and
// fused_relative.

/// One call: its terms, sizes and pairs. With bfloat16 products the terms are float32, except
/// matrices per slot, which may be float32 or bfloat16.
struct FusedCall {
  FusedCall(const AttentionTerms& terms, const AttentionCall& call, const AttentionSizes& size,
            int64_t needs);

  const AttentionTerms& terms;
  const AttentionCall& call;
  const int64_t batch, queries, tokens, heads;
  const int64_t out_width;  ///< width of the values v; 0 without v
  const at::TensorOptions options;
  const std::shared_ptr<const Pairs> pairs;
  const PartSums sums;
  const int64_t needs;  ///< bits of the gradients that backward computes; 0 in forward
  const bool pairwise;  ///< is_pairwise(): scores are lanes
  const bool batch_last;
  const bool bf16;  ///< operands of products are bfloat16

  bool key_vectors() const { return is_vectors(terms.table_k); }
  bool value_vectors() const { return is_vectors(terms.table_v); }
  bool needs_grad(int term) const { return ((needs >> term) & 1) != 0; }
  /// The number of (sample, head) combinations: lanes per pair, and maps per call.
  int64_t lane_count() const { return batch * heads; }
  int64_t pair_count() const { return queries * tokens; }

  at::Tensor new_maps() const;   ///< [B,H,Nq,N], uninitialised
  at::Tensor new_lanes() const;  ///< zeros for pairs without a slot, otherwise uninitialised
  at::Tensor as_lanes(const at::Tensor& map) const;  ///< view of a map [B,H,Nq,N] as lanes
  at::Tensor as_map(const at::Tensor& lanes) const;  ///< view of lanes as a map [B,H,Nq,N]
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

/// Returns x if the kernels can read its strides, otherwise a contiguous copy.
at::Tensor readable(const at::Tensor& x);

template <typename T>
kernels::Features<T> features(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {data<std::remove_const_t<T>>(x), x.stride(0), x.stride(1)};
}

}  // namespace translution
