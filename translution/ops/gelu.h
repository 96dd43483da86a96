#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"

namespace translution {

/// LibTorch's GELU, exact or with the tanh approximation. The bits do not depend on the number of
/// threads.
TRANSLUTION_API at::Tensor gelu(const at::Tensor& x, bool tanh);

}  // namespace translution
