#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "translution/ops/pair_list.h"

namespace translution {

/// The functions of pair_list.h in plain LibTorch calls, a piece of the pairs at a time.
at::Tensor pair_scores_portable(const EncodedRows& q, const EncodedRows& k, const PairList& pairs,
                                int64_t heads);
/// Gradients of q, k and phi; that of phi is undefined if `needs_phi` is false.
std::vector<at::Tensor> pair_scores_gradients_portable(const at::Tensor& d, const EncodedRows& q,
                                                       const EncodedRows& k, const PairList& pairs,
                                                       bool needs_phi);
at::Tensor pair_softmax_portable(const at::Tensor& scores, const at::Tensor& query, int64_t tokens,
                                 double scale);
at::Tensor pair_softmax_gradient_portable(const at::Tensor& d, const at::Tensor& weights,
                                          const at::Tensor& query, int64_t tokens, double scale);
at::Tensor pair_mix_portable(const at::Tensor& weights, const EncodedRows& v, const PairList& pairs,
                             int64_t tokens);
/// Gradients of weights, v and phi, as above.
std::vector<at::Tensor> pair_mix_gradients_portable(const at::Tensor& d, const at::Tensor& weights,
                                                    const EncodedRows& v, const PairList& pairs,
                                                    bool needs_phi);

}  // namespace translution
