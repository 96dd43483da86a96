#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"

namespace translution {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay =
      0.0;  ///< on tensors of two or more dimensions; norms and biases keep theirs
};

/// Square root of the sum of squares of all gradients; on the CPU always the same bits.
TRANSLUTION_API double gradient_norm(at::TensorList gradients);

/// The `steps`-th step of AdamW from 1 on, with gradients times `scale`: parameters and moments are
/// changed in place. The registered op `translution::adamw_`; on the CPU one pass over memory.
TRANSLUTION_API void adamw_step(const AdamWOptions& options, int64_t steps, double scale,
                                at::TensorList parameters, at::TensorList gradients,
                                at::TensorList first, at::TensorList second);

}  // namespace translution
