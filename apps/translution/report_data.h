#pragma once

#include "run_directory.h"
#include "translution/report/report.h"

namespace translution::cli {

/// Everything that a report shows of a run: its log, and, from its newest checkpoint, the norms of
/// its matrices and how it does on each evaluation set. Without `pictures`, only the log.
/// `precision` as for load_trained; the model computes on `device`.
ReportRun describe_run(const std::string& directory, bool pictures,
                       std::optional<Precision> precision = {}, torch::Device device = torch::kCPU);

}  // namespace translution::cli
