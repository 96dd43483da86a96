#pragma once

#include "translution/train/offload.h"
#include "translution/train/step.h"

namespace translution {

/// A network whose weights, and an optimizer whose moments, are in files.
struct Offloaded {
  Network& network;
  AdamW& optimizer;
  const Offload& offload;
  int64_t steps_done = 0;
};

/// train_step with the same result, bit for bit, in another order: each layer computes all parts of
/// the batch before the next layer begins. Only the inputs of the blocks are kept. Backward
/// computes a block again, updates its weights as soon as its gradients are complete and frees
/// these. It does not clip with ClipBy::global.
///
/// Calls the network's `between_blocks` in forward. From the first update on the step is not
/// interrupted. If a norm is not finite, the step ends early, and some layers may have changed: the
/// mark of the files says so.
StepOutcome offload_step(const Offloaded& state, const Batch& batch, const StepOptions& options,
                         const at::Generator& dropout);

}  // namespace translution
