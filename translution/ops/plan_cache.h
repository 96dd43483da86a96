#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "translution/kernels/slot_plan.h"

namespace translution {

/// The plan for these runs and sizes: made once and kept, since all layers of a model and all its
/// steps ask for the same one. Making it for 7x7 patches takes half a millisecond.
std::shared_ptr<const kernels::SlotPlan> slot_plan(const at::Tensor& runs, int64_t batch,
                                                   int64_t width);

}  // namespace translution
