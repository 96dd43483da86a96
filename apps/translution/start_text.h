#pragma once

#include <string>

#include "translution/train/run.h"

namespace translution::cli {

/// Which weights of a run are taken from a trained model and which start anew: a table with a line
/// for each way to start, and lines about the head, the options and the first outputs.
std::string start_text(const RunStart& start);

}  // namespace translution::cli
