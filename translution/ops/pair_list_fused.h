#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "translution/ops/pair_list.h"

namespace translution {

constexpr int64_t kMaxTaps = 256;  ///< of a pair; eight for points in space

/// The CPU kernels behind pair_list.h, for float and double. All tensors are contiguous and
/// checked.
at::Tensor pair_scores_fused(const EncodedRows& q, const EncodedRows& k, const PairList& pairs,
                             int64_t heads);
/// Gradients of q, k and phi; that of phi is undefined if `needs_phi` is false.
std::vector<at::Tensor> pair_scores_gradients(const at::Tensor& d, const EncodedRows& q,
                                              const EncodedRows& k, const PairList& pairs,
                                              bool needs_phi);
at::Tensor pair_softmax_fused(const at::Tensor& scores, const at::Tensor& query, double scale);
at::Tensor pair_softmax_gradient(const at::Tensor& d, const at::Tensor& weights,
                                 const at::Tensor& query, double scale);
at::Tensor pair_mix_fused(const at::Tensor& weights, const EncodedRows& v, const PairList& pairs,
                          int64_t tokens);
/// Gradients of weights, v and phi, as above.
std::vector<at::Tensor> pair_mix_gradients(const at::Tensor& d, const at::Tensor& weights,
                                           const EncodedRows& v, const PairList& pairs,
                                           bool needs_phi);

}  // namespace translution
