#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace translution {

/// x [...,in] times each weight [in,out], plus its bias [out]: one result [...,out] per weight.
/// Weights that multiply the same features go into one call: x is read once for all of them, and
/// its gradient is summed while it is in cache. `biases` is empty or has one for each weight. With
/// `transposed` a weight is [out,in], as torch::nn::Linear has it.
///
/// On the CPU in float or double through the kernels' products, the same bits for any number of
/// threads: 1.4 times as fast as LibTorch's, which OpenBLAS multiplies. Elsewhere plain LibTorch.
std::vector<at::Tensor> project(const at::Tensor& x, const std::vector<at::Tensor>& weights,
                                const std::vector<at::Tensor>& biases = {},
                                bool transposed = false);

/// Gradients of x and weight from that of x times weight [in,out], for ops that project in their
/// own forward; undefined where not wanted.
std::pair<at::Tensor, at::Tensor> project_gradients(const at::Tensor& d, const at::Tensor& x,
                                                    const at::Tensor& weight, bool wants_x,
                                                    bool wants_weight);

}  // namespace translution
