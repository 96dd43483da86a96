#pragma once

#include <string>
#include <vector>

#include "translution/train/metrics.h"

namespace translution::cli {

/// Writes what the log of a run says about losses, accuracies and perplexities, and nothing that
/// depends on the time: a line of "step,epoch,split,name,value" each.
void write_curves(const std::string& run, const std::string& path);

/// The lines of such a file, each with its one value. Refuses other files, with path and line.
std::vector<Metrics> read_curves(const std::string& path);

}  // namespace translution::cli
