#pragma once

#include <string>
#include <vector>

#include "translution/report/report.h"

namespace translution {

/// The parts of a report as HTML; empty where there is nothing to show.

/// One picture per metric with the lines of all runs.
std::string report_curves(const ReportData& data);

std::string report_confusion(const ReportConfusion& confusion);
std::string report_samples(const std::vector<ReportSample>& samples);
/// `id` is unique to the run.
std::string report_attention(const std::vector<ReportAttention>& maps, const std::string& id);
std::string report_norms(const std::vector<ReportNorms>& norms);

}  // namespace translution
