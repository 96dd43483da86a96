#pragma once

#include <string>
#include <vector>

#include "translution/train/metrics.h"

namespace translution::cli {

/// Writes the losses, accuracies and perplexities of a run's log as lines of
/// "step,epoch,split,name,value". Leaves out speeds, which differ from run to run.
void write_curves(const std::string& run, const std::string& path);

/// The lines of such a file, each with one value. Throws with path and line for other files.
std::vector<Metrics> read_curves(const std::string& path);

}  // namespace translution::cli
