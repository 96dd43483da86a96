#pragma once

#include <functional>

#include "translution/core/export.h"
#include "translution/data/dataset.h"
#include "translution/models/network.h"
#include "translution/train/adamw.h"
#include "translution/train/options.h"

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

/// What of these options decides the optimizer, and what a step.
TRANSLUTION_API AdamWOptions adamw_options(const TrainOptions& options);
TRANSLUTION_API StepOptions step_options(const TrainOptions& options);

/// One update of the weights: forward and backward of each part of the batch, then the optimizer.
/// Dropout draws from `dropout`, or from the process's generator where it is undefined. The step
/// ends at the first of loss and norm that is not finite, and then changes no weight. `done` is
/// told after each part how many of them are done.
TRANSLUTION_API StepOutcome train_step(Network& network, AdamW& optimizer, const Batch& batch,
                                       const StepOptions& options,
                                       const at::Generator& dropout = {},
                                       const std::function<void(int64_t parts)>& done = {});

/// So many random samples for a model, to measure a step with; from the process's generator where
/// `random` is undefined.
TRANSLUTION_API Batch random_batch(const ModelOptions& model, int64_t samples,
                                   const at::Generator& random = {});

}  // namespace translution
