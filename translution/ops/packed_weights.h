#pragma once

#include <ATen/core/Tensor.h>

namespace translution {

/// Packed bfloat16 copies of a float32 parameter, for products (kernels/bf16.h): of each matrix of
/// a table [M,k,n], or of one matrix [k,n]. `transposed` packs the transposes [n,k].
///
/// A copy is made when it is first asked for and found again until the parameter is written to. A
/// write is noticed by the tensor's version or, if it went past that (`.data`, a raw pointer), by
/// the numbers themselves when `forward` asks: all of them up to 4 MB, and one of each row of
/// larger tables, where a write to a few numbers can be missed until the next step of an optimizer.
/// Thread-safe.
///
/// Undefined for what is no contiguous float32 parameter on the CPU: that is packed in each call.
at::Tensor packed_weight(const at::Tensor& weight, bool transposed, bool forward);

/// The matrices of any contiguous float32 or bfloat16 weight, packed anew.
at::Tensor pack_weight(const at::Tensor& weight, bool transposed);

/// The copies of a parameter that an optimizer keeps current while it changes it.
struct PackedCopies {
  at::Tensor straight, transposed;  ///< [M, packed size] each; undefined where there is none
};
PackedCopies copies_to_update(const at::Tensor& weight);
/// The copies hold what the parameter holds now.
void copies_are_current(const at::Tensor& weight);

}  // namespace translution
