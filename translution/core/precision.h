#pragma once

#include "translution/core/names.h"

namespace translution {

/// The number format of matrix products.
enum class Precision {
  float32,
  /// Operands of products are rounded to bfloat16. Sums, scores, softmax, norms, the loss,
  /// gradients of weights and the optimizer stay in float32.
  bf16,
};

inline constexpr Named<Precision> kPrecisions[] = {
    {Precision::float32, "float32", "single precision throughout"},
    {Precision::bf16, "bf16", "operands of products in bfloat16, everything else in float32"},
};

}  // namespace translution
