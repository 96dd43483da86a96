#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"

namespace translution {

/// Returns a cached copy of a float32 parameter, packed as bfloat16 for products (kernels/bf16.h):
/// of each matrix of a table [M,k,n], or of one matrix [k,n]. `transposed` packs the transposes
/// [n,k].
///
/// The copy is made at the first call and reused until the parameter changes. A write is detected
/// by the tensor's version. A write that bypasses the version (`.data`, a raw pointer) is detected
/// by a digest of the numbers, computed if `forward` is set: of all numbers up to 4 MB, and of one
/// number per row of larger tables. There, a write to a few numbers can go unnoticed until the next
/// optimizer step. Thread-safe.
///
/// Returns an undefined tensor unless `weight` is a contiguous float32 parameter on the CPU. The
/// caller then packs it in each call.
at::Tensor packed_weight(const at::Tensor& weight, bool transposed, bool forward);

/// Packs the matrices of any contiguous float32 or bfloat16 weight, without caching.
at::Tensor pack_weight(const at::Tensor& weight, bool transposed);

/// The cached copies of a parameter, for an optimizer that updates them together with it.
struct PackedCopies {
  at::Tensor straight, transposed;  ///< [M, packed size] each; undefined if not cached
};
PackedCopies copies_to_update(const at::Tensor& weight);
/// Marks the cached copies as up to date with the parameter.
void copies_are_current(const at::Tensor& weight);
/// Frees the cached copies of a parameter. The next product makes them again.
TRANSLUTION_API void drop_packed(const at::Tensor& weight);

}  // namespace translution
