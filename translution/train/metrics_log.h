#pragma once

#include <string>
#include <vector>

#include "translution/io/append.h"
#include "translution/train/metrics.h"

namespace translution {

/// The log of a run: `metrics.jsonl` in its directory, one object per moment, each handed to the
/// system at once. What else shows the run is made from it: TensorBoard's event file, which grows
/// with it and is written anew when the log is opened, and metrics.csv.
class MetricsLog {
 public:
  /// Keeps what the directory's log says up to step `after`, and cuts all behind it, a broken last
  /// line too; -1 starts a new log. For a resumed run to have the log of an undisturbed one, a
  /// moment must be logged, and synced, before a checkpoint of its step is saved.
  /// Without `evaluated`, the evaluation of step `after` is cut as well, since it is made again.
  explicit MetricsLog(const std::string& directory, int64_t after = -1, bool evaluated = true);

  /// Names and splits are printable ASCII without comma, quote and backslash; "step", "epoch" and
  /// "split" are taken. Values that are not finite are kept as such.
  void add(const Metrics& metrics);
  void sync();

 private:
  MetricsLog(const std::string& directory, const std::vector<Metrics>& kept);

  AppendFile log_, events_;
};

/// Writes `metrics.csv` from the log of a directory: step, epoch, split, name, value, one line for
/// each value.
void write_metrics_csv(const std::string& directory);

}  // namespace translution
