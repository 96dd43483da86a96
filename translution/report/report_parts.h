#pragma once

#include <string>
#include <vector>

#include "translution/report/report.h"

namespace translution {

// The parts of a report as HTML; empty if there is nothing to show.

/// One chart per metric with the lines of all runs.
std::string report_curves(const ReportData& data);

/// Confusion matrix, samples and attention maps. `id` must be unique to the run and the set.
std::string report_evaluation(const ReportEvaluation& evaluation, const std::string& id);
std::string report_norms(const std::vector<ReportNorms>& norms);

}  // namespace translution
