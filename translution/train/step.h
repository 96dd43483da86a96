#pragma once

#include <functional>

#include "translution/core/export.h"
#include "translution/data/dataset.h"
#include "translution/models/network.h"
#include "translution/train/adamw.h"
#include "translution/train/options.h"

namespace translution {

struct StepOptions {
  int64_t parts = 1;           ///< that the batch is split into, to save memory
  double label_smoothing = 0;  ///< share of the target spread over all classes
  double clip = 0;             ///< maximum norm of the gradients; 0: no clipping
  ClipBy clip_by = ClipBy::global;
  double last_norm = 0;  ///< of the previous step, for ClipBy::last; 0 in the first step
  NumberLoss number_loss = NumberLoss::squared;
};

struct StepOutcome {
  double loss = 0;  ///< mean over the batch
  double norm = 0;  ///< of the gradients before clipping
};

/// The options of the optimizer and of a step.
TRANSLUTION_API AdamWOptions adamw_options(const TrainOptions& options);
TRANSLUTION_API StepOptions step_options(const TrainOptions& options);

/// The samples begin … begin + count - 1 of a batch.
TRANSLUTION_API Batch samples_of(const Batch& batch, int64_t begin, int64_t count);

/// Adds the gradients of some samples of a batch of `of` samples: forward and backward in
/// `options.parts` parts. Returns their share of the batch's mean loss; returns early if it is not
/// finite. `dropout` and `done` are those of train_step.
TRANSLUTION_API double add_gradients(Network& network, const Batch& samples, int64_t of,
                                     const StepOptions& options, const at::Generator& dropout = {},
                                     const std::function<void(int64_t parts)>& done = {});

struct SplitGradients;

/// Clips the gradients and updates the weights, unless the norm is not finite. Returns the norm
/// before clipping. `split`: gradients of which other ranks have parts (train/clip.h).
TRANSLUTION_API double clip_and_update(Network& network, AdamW& optimizer,
                                       const StepOptions& options);
double clip_and_update(Network& network, AdamW& optimizer, const StepOptions& options,
                       const SplitGradients& split);

/// One update of the weights: forward and backward of each part of the batch, then the optimizer.
/// Dropout draws from `dropout`, or from the process's generator if it is undefined. Returns early,
/// without changing a weight, if the loss or the norm is not finite. Calls `done` after each part
/// with the number of parts done.
TRANSLUTION_API StepOutcome train_step(Network& network, AdamW& optimizer, const Batch& batch,
                                       const StepOptions& options,
                                       const at::Generator& dropout = {},
                                       const std::function<void(int64_t parts)>& done = {});

/// Random samples that fit the model, for benchmarks; drawn from `random`, or from the process's
/// generator if it is undefined.
TRANSLUTION_API Batch random_batch(const ModelOptions& model, int64_t samples,
                                   const at::Generator& random = {});

}  // namespace translution
