#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/precision.h"

namespace translution {

/// Multiplies x [...,in] by each weight [in,out] and adds its bias [out]. Returns one [...,out] per
/// weight. Pass all weights that multiply the same features in one call: x is read once for all of
/// them, and its gradient is summed in cache. `biases` is empty or has one per weight. With
/// `transposed` the weights are [out,in], as in torch::nn::Linear.
///
/// With Precision::bf16, or x in bfloat16, x and weights are rounded to bfloat16 and products are
/// summed in float32. Weights may then be float32 or bfloat16. The result has the type of x.
///
/// For float, double and bfloat16 on the CPU this uses the fused kernels: the bits do not depend on
/// the number of threads, and it is 1.4 times as fast as LibTorch with OpenBLAS. Otherwise plain
/// LibTorch.
TRANSLUTION_API std::vector<at::Tensor> project(const at::Tensor& x,
                                                const std::vector<at::Tensor>& weights,
                                                const std::vector<at::Tensor>& biases = {},
                                                bool transposed = false,
                                                Precision precision = Precision::float32);

/// The gradients of x and weight [in,out] from the gradient d of their product, for ops that
/// project inside their own forward. A gradient that is not needed is undefined.
TRANSLUTION_API std::pair<at::Tensor, at::Tensor> project_gradients(
    const at::Tensor& d, const at::Tensor& x, const at::Tensor& weight, bool needs_dx,
    bool needs_dweight, Precision precision = Precision::float32);

}  // namespace translution
