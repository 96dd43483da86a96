#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/sources.h"
#include "translution/models/options.h"
#include "translution/train/metrics.h"
#include "translution/train/options.h"

namespace translution {

/// What a caller is told while training goes on; each may be missing.
struct TrainEvents {
  std::function<void(int64_t step)> started;  ///< once, with the step after which training begins
  std::function<void(int64_t step, const Metrics& latest)> step;
  std::function<void(const Metrics&)> metrics;      ///< as they go into the log
  std::function<void(const std::string&)> message;  ///< a line for people
};

/// Everything that decides a training run.
struct RunOptions {
  /// Sizes of images, classes and vocabulary are taken from the data, except those in
  /// `fixed_sizes`; the precision is that of `train`.
  ModelOptions model;
  DataOptions data;
  TrainOptions train;
  std::string directory;  ///< config.toml, metrics.jsonl and checkpoints/ go here
  bool resume = false;    ///< continue from the newest whole checkpoint, if there is one

  /// Sizes of the model that the data must have: "image-size", "channels", "classes", "vocabulary".
  std::vector<std::string> fixed_sizes = {};
  std::string comment = {};  ///< first line of config.toml
  TrainEvents events = {};
};

struct TrainResult {
  bool done = false;  ///< false: stopped on request, after a checkpoint was saved
  int64_t step = 0;   ///< the last one taken
};

/// Refuses an empty name, and a directory whose files a run would overwrite: a run that is not to
/// be resumed, or a log or configuration without a checkpoint.
TRANSLUTION_API void check_run_directory(const std::string& directory, bool resume);

/// Updates in one pass over the training data, and in the whole run.
TRANSLUTION_API int64_t steps_per_epoch(const DataSource& data, const TrainOptions& options);
TRANSLUTION_API int64_t total_steps(const DataSource& data, const TrainOptions& options);

/// How far a run is.
struct RunState {
  int64_t step = 0;       ///< of the newest checkpoint; 0: there is none
  bool evaluated = true;  ///< false: the evaluation after that step was interrupted
};
TRANSLUTION_API RunState run_state(const std::string& directory);

/// Opens the data of the run and fits the model to it: completes `options.model` and
/// `options.data`. Refuses data that does not fit, and a step that takes more memory than there is.
TRANSLUTION_API DataSource open_run(RunOptions& options);

/// Trains until the end of the run, or until `stop` is set: then a checkpoint is saved. `options`
/// are those that open_run has completed, `data` is what it returned or the caller's own.
TRANSLUTION_API TrainResult train(const RunOptions& options, const DataSource& data,
                                  const std::atomic<bool>& stop);

/// The same in one call, until the end of the run.
TRANSLUTION_API TrainResult train(RunOptions options);

}  // namespace translution
