// Logs of runs: any bytes are either rejected with std::runtime_error, or are metrics with finite
// epochs and steps of 0 or more.

#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "translution/train/metrics.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    for (const auto& moment : translution::parse_metrics(bytes, "metrics.jsonl"))
      if (moment.step < 0 || !std::isfinite(moment.epoch)) std::abort();
  } catch (const std::runtime_error&) {
  }
  return 0;
}
