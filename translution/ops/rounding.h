#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/precision.h"

namespace translution {

/// Are operands of products bfloat16: by the precision asked for, or because x is?
bool multiplies_bf16(Precision precision, const at::Tensor& x);

/// x as bfloat16; x itself if it is so already. On the CPU by the rule of the kernels
/// (kernels/bf16.h), contiguous.
at::Tensor to_bf16(const at::Tensor& x);

/// The numbers of x, rounded to bfloat16, as float32. Undefined stays so.
at::Tensor rounded(const at::Tensor& x);

}  // namespace translution
