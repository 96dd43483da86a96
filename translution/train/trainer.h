#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "translution/data/loader.h"
#include "translution/data/sources.h"
#include "translution/distributed/world.h"
#include "translution/models/network.h"
#include "translution/train/checkpoint_store.h"
#include "translution/train/evaluate.h"
#include "translution/train/gradient_exchange.h"
#include "translution/train/gradient_tree.h"
#include "translution/train/metrics_log.h"
#include "translution/train/offload.h"
#include "translution/train/offset_sum.h"
#include "translution/train/rank_grid.h"
#include "translution/train/run.h"
#include "translution/train/split_checkpoint.h"
#include "translution/train/step.h"
#include "translution/train/usage.h"

namespace translution {

/// The weights that a run started from.
struct Origin {
  std::string path;      ///< as the user wrote it; empty: random weights
  std::string checksum;  ///< XXH3-128 of the file
};

/// Trains a network on a data source, on the device of the options, in a run directory that holds
/// the log and the checkpoints. Everything random is drawn from the seed and the step, so that a
/// run that was killed and resumed ends with the same bits as an uninterrupted one, for any number
/// of threads and workers; with `shards`, for any number of processes.
class Trainer {
 public:
  struct Setup {
    TrainOptions options;
    std::string directory;
    SettingTexts config;  ///< model and data: stored in every checkpoint, compared on resume
    /// Values of settings that are missing in older checkpoints.
    std::map<std::string, std::string> before = {};
    /// Optional: the machine's current GFLOP/s of matrix products in the model's precision; called
    /// once per log line.
    std::function<double()> product_gflops = {};
    TrainEvents events = {};
    Origin origin = {};  ///< of the weights, if they are not random
    /// The processes that train together. Rank 0 writes the files, except rows of split tables.
    std::shared_ptr<World> world = std::make_shared<World>();
    /// Optional, for a single process: holds the weights of the network in files, and will hold the
    /// moments.
    std::shared_ptr<Offload> offload = {};
  };
  Trainer(Network& network, const DataSource& data, Setup setup);

  /// Resumes from the newest undamaged checkpoint, if there is one. Reports damaged checkpoints and
  /// changed training settings.
  void resume();
  /// Trains to the end, or until `stop` is set; then saves a checkpoint. Stopping takes at most the
  /// forward or backward pass of one block plus the save. An interrupted step or evaluation is
  /// repeated on resume. Returns true if training reached the end. In offset-parallel training,
  /// where ranks stop in the sum of a layer, it takes at most the passes of all blocks without one.
  bool run(const std::atomic<bool>& stop);

  int64_t step() const { return state_.step; }
  /// Of the weights; after resume(), that of the checkpoint.
  const Origin& origin() const { return origin_; }

 private:
  // Trainer state in a checkpoint, apart from tensors.
  struct State {
    int64_t step = 0;
    double best = 0;                  // score of the best evaluation
    bool evaluated = false;           // true after the first evaluation
    bool evaluation_pending = false;  // the evaluation after this step was interrupted
    double loss_sum = 0;              // since the last line of the log
    int64_t loss_count = 0;
    double last_norm = 0;  // of the gradients, for ClipBy::last
  };

  double take_step(Loader& loader);
  StepOutcome step_in_memory(Loader& loader, BatchPlan& plan);
  StepOutcome step_in_files(Loader& loader, BatchPlan& plan);
  StepOptions options_of_step() const;
  SplitGradients split_gradients();
  at::Generator dropout_of_shard(int64_t shard);
  LoadedBatch next_batch(Loader& loader, BatchPlan& plan);
  torch::Tensor add_shards(Loader& loader, GradientTree& tree, BatchPlan& plan);
  torch::Tensor shared(const torch::Tensor& values, bool interrupted);
  void require_finite_value(double number, const char* what, const BatchPlan& plan) const;
  void log_training(double norm);
  void begin_log_line();
  bool evaluate_all();
  std::vector<Evaluation> evaluations();
  torch::Tensor evaluate_on(const EvaluationSet& set);
  void train_on(const std::atomic<bool>& stop);
  bool run_until(const std::atomic<bool>& stop);
  void save(bool is_best);
  CheckpointContent content() const;
  void restore(const Checkpoint& checkpoint);
  NewestWhole newest_checkpoint() const;
  void restore_tensors(const Checkpoint& checkpoint);
  void restore_origin(const Checkpoint& checkpoint);
  void report_changes(const Checkpoint& checkpoint) const;
  void log_metrics(const Metrics& metrics);
  bool is_due(int64_t every) const;
  int64_t batch_samples() const { return std::min(options_.batch, data_.train->size()); }
  double epochs_done() const;

  Network& network_;
  const DataSource& data_;
  const Setup setup_;
  const TrainOptions& options_;
  std::vector<std::pair<std::string, torch::Tensor>> parameters_;
  AdamW optimizer_;
  const std::shared_ptr<World> world_;
  const RankGrid ranks_;
  const std::map<std::string, TableRows> tables_;     // that ranks split, by name of the parameter
  std::unique_ptr<OffsetSum> offset_sum_;             // while an offset-parallel training runs
  const BatchShards shards_;                          // of each batch, for this process
  const std::unique_ptr<GradientExchange> exchange_;  // if each process has one shard of several
  std::unique_ptr<CheckpointStore> store_;            // of rank 0
  std::unique_ptr<MetricsLog> log_;
  const int64_t per_epoch_, total_;  // steps
  State state_;
  Origin origin_;
  int64_t saved_ = -1;  // step of the newest checkpoint; -1: none
  Metrics latest_;
  // Since the last log line, or since the run was resumed.
  int64_t samples_ = 0;
  double seconds_ = 0, waited_ = 0;  // total; waiting for data
  int64_t sent_ = 0;                 // bytes to other processes
  Usage usage_;
};

}  // namespace translution
