#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/precision.h"

namespace translution {

/// x [...,in] times each weight [in,out], plus its bias [out]: one result [...,out] per weight.
/// Weights that multiply the same features go into one call: x is read once for all of them, and
/// its gradient is summed while it is in cache. `biases` is empty or has one for each weight. With
/// `transposed` a weight is [out,in], as torch::nn::Linear has it.
///
/// With Precision::bf16, or for x in bfloat16, x and weights are rounded and products summed in
/// float32; weights may be float32 or bfloat16, and the result has the type of x.
///
/// On the CPU in float, double or bfloat16 through the kernels' products, the same bits for any
/// number of threads: 1.4 times as fast as LibTorch's, which OpenBLAS multiplies. Elsewhere plain
/// LibTorch.
TRANSLUTION_API std::vector<at::Tensor> project(const at::Tensor& x,
                                                const std::vector<at::Tensor>& weights,
                                                const std::vector<at::Tensor>& biases = {},
                                                bool transposed = false,
                                                Precision precision = Precision::float32);

/// Gradients of x and weight from that of x times weight [in,out], for ops that project in their
/// own forward; undefined where not needed.
TRANSLUTION_API std::pair<at::Tensor, at::Tensor> project_gradients(
    const at::Tensor& d, const at::Tensor& x, const at::Tensor& weight, bool needs_dx,
    bool needs_dweight, Precision precision = Precision::float32);

}  // namespace translution
