#pragma once

#include "translution/ops/attention_op.h"

namespace translution {

/// `translution::attention` and its gradient on the CPU: the fused kernels, or the portable path
/// for terms and types that they do not have. TRANSLUTION_IMPL=portable turns them off.
AttentionForward* attention_cpu();
AttentionBackward* attention_backward_cpu();

}  // namespace translution
