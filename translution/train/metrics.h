#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "translution/core/export.h"
#include "translution/core/precision.h"

namespace translution {

/// What was measured at one moment of a run, in the order in which it is to be shown.
struct Metrics {
  int64_t step = 0;   ///< optimizer steps done
  double epoch = 0;   ///< passes over the training data done
  std::string split;  ///< "train", "static", "dynamic" or "val"
  std::vector<std::pair<std::string, double>> values;
};

/// The name in the log of the share that training reaches of the machine's matrix products in that
/// precision: "share_of_sgemm" or "share_of_bf16".
TRANSLUTION_API const char* share_metric(Precision precision);

/// The moments of a `metrics.jsonl`. A last line that cannot be read is left out, since a killed
/// run leaves such; any other is named.
TRANSLUTION_API std::vector<Metrics> parse_metrics(std::string_view bytes, const std::string& path);
TRANSLUTION_API std::vector<Metrics> read_metrics(const std::string& path);

}  // namespace translution
