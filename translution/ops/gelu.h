#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"

namespace translution {

/// x times the normal distribution's share below x, or its approximation by a hyperbolic tangent:
/// LibTorch's, with the same bits for any number of threads.
TRANSLUTION_API at::Tensor gelu(const at::Tensor& x, bool tanh);

}  // namespace translution
