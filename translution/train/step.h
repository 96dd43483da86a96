#pragma once

#include <functional>

#include "translution/data/dataset.h"
#include "translution/models/network.h"
#include "translution/train/adamw.h"

namespace translution {

struct StepOptions {
  int64_t parts = 1;           ///< in which the batch is worked through, to save memory
  double label_smoothing = 0;  ///< of the loss
  double clip = 0;             ///< largest norm of the gradients; 0: no clipping
};

struct StepOutcome {
  double loss = 0;  ///< mean over the batch
  double norm = 0;  ///< of the gradients before clipping
};

/// One update of the weights: forward and backward of each part of the batch, then the optimizer.
/// It ends at the first of loss and norm that is not finite, and then changes no weight. `done` is
/// told after each part how many of them are done.
StepOutcome train_step(Network& network, AdamW& optimizer, const Batch& batch,
                       const StepOptions& options,
                       const std::function<void(int64_t parts)>& done = {});

/// So many random samples for a model, to measure a step with.
Batch random_batch(const ModelOptions& model, int64_t samples);

}  // namespace translution
