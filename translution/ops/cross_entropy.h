#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"

namespace translution {

/// The mean cross-entropy of logits [rows,classes], as at::cross_entropy_loss defines it. `target`
/// is [rows] with a class per row (int64), or [rows,classes] with class probabilities.
///
/// With a class per row, the gradient is the only tensor of the logits' size. LibTorch also writes
/// the log-probabilities, which took half of a training step of gpt-a-160 (50,257 classes).
TRANSLUTION_API at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                                         double label_smoothing = 0);

}  // namespace translution
