#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"

namespace translution {

/// Layer normalisation of each row of x [...,C], with weight [C] and bias [C]:
///   y = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias
///
/// Uses our kernels for float and double on the CPU, because LibTorch sums the gradients of weight
/// and bias per thread, so their bits depend on the number of threads. Otherwise LibTorch's.
TRANSLUTION_API at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight,
                                      const at::Tensor& bias, double eps = 1e-5);

}  // namespace translution
