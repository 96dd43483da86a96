#pragma once

#include <string>
#include <vector>

#include "translution/io/append.h"
#include "translution/train/metrics.h"

namespace translution {

/// The log of a run: `metrics.jsonl` in its directory, one JSON object per entry, each written
/// without buffering. Two files are derived from it: TensorBoard's event file, which is rewritten
/// when the log is opened and grows with it, and metrics.csv.
class MetricsLog {
 public:
  /// Truncates an existing log after step `after`, including a damaged last line; -1 starts a new
  /// log. To give a resumed run the log of an uninterrupted one, add and sync the entries of a step
  /// before its checkpoint is saved.
  /// If `evaluated` is false, also removes the evaluations of step `after`, which will be repeated.
  explicit MetricsLog(const std::string& directory, int64_t after = -1, bool evaluated = true);

  /// Names and splits are printable ASCII without comma, quote and backslash; the names "step",
  /// "epoch" and "split" are reserved. Values may be infinite or NaN.
  void add(const Metrics& metrics);
  void sync();

 private:
  MetricsLog(const std::string& directory, const std::vector<Metrics>& entries);

  AppendFile log_, events_;
};

/// Writes `metrics.csv` from the log of a directory: step, epoch, split, name, value; one line per
/// value.
void write_metrics_csv(const std::string& directory);

}  // namespace translution
