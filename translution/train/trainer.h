#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "translution/data/loader.h"
#include "translution/data/sources.h"
#include "translution/models/network.h"
#include "translution/train/checkpoint_store.h"
#include "translution/train/evaluate.h"
#include "translution/train/metrics_log.h"
#include "translution/train/run.h"
#include "translution/train/step.h"

namespace translution {

/// Trains a network on a data source, on the device of the options, in a run directory that holds
/// the log and the checkpoints. Everything random is drawn from the seed and the step, so that a
/// run that was killed and resumed ends with the same bits as an undisturbed one, for any number of
/// threads and workers.
class Trainer {
 public:
  struct Setup {
    TrainOptions options;
    std::string directory;
    SettingTexts config;  ///< model and data: kept in every checkpoint, compared on resuming
    /// Values of settings that older checkpoints do not have.
    std::map<std::string, std::string> before = {};
    /// GFLOP/s of matrix products in the model's precision on this machine now, for the share of it
    /// in the log, which asks at every line; may be missing.
    std::function<double()> product_gflops = {};
    TrainEvents events = {};
  };
  Trainer(Network& network, const DataSource& data, Setup setup);

  /// Goes on from the newest whole checkpoint, if there is one; tells of damaged ones, and of
  /// settings of training that are not those of the checkpoint.
  void resume();
  /// To the end, or until `stop` is set: then a checkpoint is saved and the rest left undone. That
  /// takes the forward or backward pass of a block at most, and the time to save; a step or an
  /// evaluation that it interrupts is repeated when the run is resumed. Returns whether it got to
  /// the end.
  bool run(const std::atomic<bool>& stop);

  int64_t step() const { return state_.step; }

 private:
  // What a checkpoint knows beside tensors.
  struct State {
    int64_t step = 0;
    double best = 0;               // score of the best evaluation
    bool evaluated = false;        // is there one?
    bool owes_evaluation = false;  // was the evaluation after this step interrupted?
    double loss_sum = 0;           // since the last line of the log
    int64_t loss_count = 0;
  };

  double take_step(const LoadedBatch& loaded);
  void stop_on(double number, const char* what, const LoadedBatch& loaded) const;
  void log_training(double norm);
  bool evaluate_all();
  void train_on(const std::atomic<bool>& stop);
  bool run_until(const std::atomic<bool>& stop);
  void save(bool is_best);
  CheckpointContent content() const;
  void restore(const Checkpoint& checkpoint);
  void tell_changes(const Checkpoint& checkpoint) const;
  void tell(const Metrics& metrics);
  bool due(int64_t every) const;
  double epochs_done() const;

  Network& network_;
  const DataSource& data_;
  const Setup setup_;
  const TrainOptions& options_;
  std::vector<std::pair<std::string, torch::Tensor>> parameters_;
  AdamW optimizer_;
  CheckpointStore store_;
  std::unique_ptr<MetricsLog> log_;
  const int64_t per_epoch_, total_;  // steps
  State state_;
  int64_t saved_ = -1;  // step of the newest checkpoint; -1: none
  Metrics latest_;
  // Of the steps since the last line of the log, or since the run went on.
  int64_t samples_ = 0;
  double seconds_ = 0, waited_ = 0;  // in all; for data
};

}  // namespace translution
