#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/precision.h"

namespace translution {

/// Returns whether operands are multiplied in bfloat16: if `precision` is bf16 or x is bfloat16.
bool multiplies_bf16(Precision precision, const at::Tensor& x);

/// Converts x to bfloat16; returns x itself if it is bfloat16. On the CPU float32 is rounded as in
/// the kernels (kernels/bf16.h), and the result is contiguous.
at::Tensor to_bf16(const at::Tensor& x);

/// Rounds x to bfloat16 and converts it back to float32. Returns x if it is undefined.
at::Tensor rounded(const at::Tensor& x);

}  // namespace translution
