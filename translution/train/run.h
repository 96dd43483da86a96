#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/sources.h"
#include "translution/distributed/world.h"
#include "translution/models/options.h"
#include "translution/models/warm_start.h"
#include "translution/train/metrics.h"
#include "translution/train/model_file.h"
#include "translution/train/options.h"

namespace translution {

/// Callbacks during training; each may be empty.
struct TrainEvents {
  std::function<void(int64_t step)> started;  ///< once, with the last step already done
  std::function<void(int64_t step, const Metrics& latest)> step;  ///< after every step
  std::function<void(const Metrics&)> metrics;                    ///< each entry of the log
  std::function<void(const std::string&)> message;                ///< a line for the user
};

/// Options of a training run.
struct RunOptions {
  /// Image size, channels, classes, vocabulary and what points have are taken from the data, except
  /// those in `fixed_sizes`; the precision is that of `train`.
  ModelOptions model;
  DataOptions data;
  TrainOptions train;
  std::string directory;  ///< of the run: config.toml, metrics.jsonl, checkpoints/
  bool resume = false;    ///< continue from the newest undamaged checkpoint, if there is one
  /// Weights to start from: a run, a checkpoint, or a file with a model's options. Empty: random.
  /// Not read if a checkpoint is resumed. `model` may differ as plan_warm_start allows.
  std::string from = {};

  /// Model sizes that the data must match: "image-size", "channels", "classes", "vocabulary",
  /// "axes"; and "points", which are counted for costs.
  std::vector<std::string> fixed_sizes = {};
  std::string comment = {};  ///< first line of config.toml
  TrainEvents events = {};
  /// The processes that train together; a single one if null. All must have the same options, data
  /// and weights, and see the same run directory. Rank 0 writes it, except rows of
  /// split tables in checkpoints.
  std::shared_ptr<World> world = nullptr;
  /// What else must be the same on all ranks, such as versions: name and value.
  SettingTexts facts = {};
};

struct TrainResult {
  bool done = false;  ///< false: stopped on request, with a checkpoint saved
  int64_t step = 0;   ///< the last step done
};

/// Throws if the name is empty or if a run would overwrite files in the directory: a run without
/// `resume`, or a log or config without a checkpoint.
TRANSLUTION_API void check_run_directory(const std::string& directory, bool resume);

/// Steps in one epoch and in the whole run.
TRANSLUTION_API int64_t steps_per_epoch(const DataSource& data, const TrainOptions& options);
TRANSLUTION_API int64_t total_steps(const DataSource& data, const TrainOptions& options);

/// Progress of a run.
struct RunState {
  int64_t step = 0;       ///< of the newest checkpoint; 0: there is none
  bool evaluated = true;  ///< false: the evaluation after that step was interrupted
};
TRANSLUTION_API RunState run_state(const std::string& directory);

/// Opens the data of the run and completes `options.model` and `options.data` from it. Throws if
/// the data does not fit the model, or if a step needs more memory than is available.
TRANSLUTION_API DataSource open_run(RunOptions& options);

/// The path of the weights that the run starts with: that of the run itself if it has a checkpoint
/// to resume, else `options.from`. Empty: random weights.
TRANSLUTION_API std::string weights_path(const RunOptions& options);

/// How a run starts from the weights at `from`.
struct RunStart {
  StoredModel model;  ///< at `from`
  WarmStart weights;
  bool takes_head = true;
  std::string head = {};  ///< why the head starts anew, or what is unknown about its classes
};
/// Empty if the run starts with random weights or resumes a checkpoint. `options` must have been
/// completed by open_run. Throws if the weights do not fit.
TRANSLUTION_API std::optional<RunStart> plan_start(const RunOptions& options,
                                                   const DataSource& data);

/// Trains until the end of the run, or until `stop` is set; then saves a checkpoint. `options` must
/// have been completed by open_run; `data` is its result or the caller's own.
TRANSLUTION_API TrainResult train(const RunOptions& options, const DataSource& data,
                                  const std::atomic<bool>& stop);

/// Calls open_run and trains until the end of the run.
TRANSLUTION_API TrainResult train(RunOptions options);

}  // namespace translution
