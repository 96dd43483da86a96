#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/precision.h"
#include "translution/report/report.h"

namespace translution {

class Network;

/// Options of a report.
struct RunReportOptions {
  bool pictures = true;                ///< false: shows only the log and loads no models
  std::optional<Precision> precision;  ///< of the models; unset: that of each run
  std::string device = "cpu";          ///< see train/device.h
  std::function<void(const std::string&)> report = {};  ///< called with a message per broken image
};

/// Collects the data of a run for a report: its log and, from its newest checkpoint, the norms of
/// its weight tables and its results on each evaluation set.
TRANSLUTION_API ReportRun describe_run(const std::string& directory,
                                       const RunReportOptions& options = {});

/// The norms of all matrices per offset of a network, a table each. Empty for methods without them,
/// for shared offsets, and for grids of more than two dimensions.
TRANSLUTION_API std::vector<ReportNorms> matrix_norms(Network& network);

/// Writes one HTML file that shows one or more runs side by side.
TRANSLUTION_API void write_run_report(const std::string& file,
                                      const std::vector<std::string>& directories,
                                      const RunReportOptions& options = {});

}  // namespace translution
