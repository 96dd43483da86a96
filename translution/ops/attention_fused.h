#pragma once

#include "translution/ops/attention_op.h"

namespace translution {

/// `translution::attention` and its gradient on the CPU: the fused kernels, or the portable path
/// for terms and types that the kernels do not support. TRANSLUTION_IMPL=portable disables the
/// kernels.
AttentionForward* attention_cpu();
AttentionBackward* attention_backward_cpu();

}  // namespace translution
