#pragma once

#include <string>
#include <vector>

#include "translution/report/report.h"

namespace translution {

/// The parts of a report as HTML; empty where there is nothing to show.

/// One picture per metric with the lines of all runs.
std::string report_curves(const ReportData& data);

/// Confusion, samples and attention. `id` is unique to the run and the set.
std::string report_evaluation(const ReportEvaluation& evaluation, const std::string& id);
std::string report_norms(const std::vector<ReportNorms>& norms);

}  // namespace translution
