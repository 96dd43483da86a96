#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"

namespace translution {

/// Each row of x [...,C] less its mean, over its deviation, times weight [C] plus bias [C]:
///   y = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias
///
/// On the CPU in float or double with kernels of ours: LibTorch's gradients of weight and bias are
/// summed by thread, so that their bits depend on the number of threads. Elsewhere LibTorch's.
TRANSLUTION_API at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight,
                                      const at::Tensor& bias, double eps = 1e-5);

}  // namespace translution
