#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"

namespace translution {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  bool decay_vectors = false;  ///< weight decay for tensors of fewer than two dimensions, too
};

/// The L2 norm of all gradients together. On the CPU the bits do not depend on the number of
/// threads.
TRANSLUTION_API double gradient_norm(at::TensorList gradients);

/// Step number `steps` (the first is 1) of AdamW. Multiplies the gradients by `scale`, and updates
/// parameters and moments (`first`, `second`) in place. The registered op `translution::adamw_`; on
/// the CPU a single pass over memory.
TRANSLUTION_API void adamw_step(const AdamWOptions& options, int64_t steps, double scale,
                                at::TensorList parameters, at::TensorList gradients,
                                at::TensorList first, at::TensorList second);

}  // namespace translution
