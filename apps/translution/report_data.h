#pragma once

#include "run_directory.h"
#include "translution/report/report.h"

namespace translution::cli {

/// Everything that a report shows of a run: its log, and, from its newest checkpoint, how it does
/// on the first evaluation set. `pictures`: evaluate the model too; without, only the curves.
ReportRun describe_run(const std::string& directory, bool pictures);

}  // namespace translution::cli
