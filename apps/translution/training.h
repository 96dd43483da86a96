#pragma once

#include <string>

#include "translution/train/run.h"

namespace translution::cli {

/// translution::train until the end of the run, or until a signal asks to stop (signals.h). The
/// first line of config.toml says which program, LibTorch and instruction set made the run.
TrainResult train_until_signal(RunOptions options, const DataSource& data);

/// "loss 0.31  1,840 samples/s": what a line of progress shows.
std::string metrics_text(const Metrics& metrics);

}  // namespace translution::cli
