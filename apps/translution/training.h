#pragma once

#include <string>

#include "translution/train/run.h"

namespace translution::cli {

/// Calls translution::train until the end of the run, or until a signal requests a stop
/// (signals.h). The first line of config.toml names the versions of program and LibTorch, the
/// instruction set and the number of threads.
TrainResult train_until_signal(RunOptions options, const DataSource& data);

/// The text of a line of progress: "loss 0.31  1,840 samples/s".
std::string metrics_text(const Metrics& metrics);

}  // namespace translution::cli
