#pragma once

#include <string>

#include "translution/data/sources.h"
#include "translution/models/options.h"
#include "translution/train/trainer.h"

namespace translution::cli {

/// All that decides a run.
struct TrainingSettings {
  ModelOptions model;
  DataOptions data;
  TrainOptions train;
  int threads = 1;
};

struct TrainingCall {
  TrainingSettings settings;
  std::string out;  ///< the run directory
  bool resume = false;
  TrainEvents events;
  std::function<void(int64_t step)> started;  ///< told after which step the run goes on
};

struct Reached {
  bool done;  ///< false: stopped by a signal, after a checkpoint was saved
  int64_t step;
};

/// Refuses a directory whose files a run would overwrite: a run, unless it is to be resumed; and
/// logs or a configuration without a checkpoint to go on from.
void check_run_directory(const std::string& out, bool resume);

/// Trains in the run directory, with config.toml beside the log, until it is done or a signal asks
/// to stop (signals.h).
Reached train_in(const DataSource& source, const TrainingCall& call);

/// GFLOP/s of matrix products on this machine in that precision, measured again when it is a minute
/// old: machines have neighbours, and one measurement at the start of a long training may be far
/// from what the machine does later. For one thread to call.
double product_rate(Precision precision, int threads);

/// "loss 0.31  1,840 samples/s": what a line of progress shows.
std::string metrics_text(const Metrics& metrics);

}  // namespace translution::cli
