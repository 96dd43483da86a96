#pragma once

#include <ATen/core/Tensor.h>

#include "translution/core/export.h"

namespace translution {

/// The mean cross-entropy of logits [rows,classes], as at::cross_entropy_loss has it. `target` is a
/// class for each row [rows], or shares of classes [rows,classes].
///
/// For classes, nothing of the logits' size is made but their gradient: LibTorch writes logarithms
/// of probabilities as well, and half of a step of gpt-a-160, which tells 50,257 tokens apart, went
/// into that.
TRANSLUTION_API at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                                         double label_smoothing = 0);

}  // namespace translution
