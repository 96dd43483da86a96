#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/precision.h"

namespace translution {

/// One entry of a run's log: values measured after a step, in display order.
struct Metrics {
  int64_t step = 0;   ///< optimizer steps so far
  double epoch = 0;   ///< passes over the training data so far
  std::string split;  ///< "train", "static", "dynamic" or "val"
  std::vector<std::pair<std::string, double>> values;
};

/// The log's name for the FLOP rate of training divided by the machine's rate of matrix products in
/// this precision: "share_of_sgemm" or "share_of_bf16".
TRANSLUTION_API const char* share_metric(Precision precision);

/// Parses the entries of a `metrics.jsonl`. Skips a damaged last line, which a killed run can
/// leave; throws at any other damaged line and names it.
TRANSLUTION_API std::vector<Metrics> parse_metrics(std::string_view bytes, const std::string& path);
TRANSLUTION_API std::vector<Metrics> read_metrics(const std::string& path);

}  // namespace translution
