#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/precision.h"
#include "translution/report/report.h"

namespace translution {

/// What is shown of runs.
struct RunReportOptions {
  bool pictures = true;                ///< false: only what the log says; models are not loaded
  std::optional<Precision> precision;  ///< of the models; unset: each run's own
  std::string device = "cpu";          ///< that models compute on
  std::function<void(const std::string&)> report = {};  ///< told of each broken image
};

/// Everything that a report shows of a run: its log, and, from its newest checkpoint, the norms of
/// its matrices and how it does on each evaluation set.
TRANSLUTION_API ReportRun describe_run(const std::string& directory,
                                       const RunReportOptions& options = {});

/// One HTML file with all of that for one or more runs, side by side.
TRANSLUTION_API void write_run_report(const std::string& file,
                                      const std::vector<std::string>& directories,
                                      const RunReportOptions& options = {});

}  // namespace translution
