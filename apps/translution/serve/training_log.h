#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace translution::serve {

/// A curve of a run's log, thinned to what a chart can show.
struct LogSeries {
  std::string metric, split;                       ///< "loss", "train"
  std::vector<std::pair<int64_t, double>> points;  ///< step and value
};

/// How far a training is, from the files in its directory.
struct TrainingLog {
  std::vector<LogSeries> series;
  int64_t step = 0, steps = 0;    ///< done and in all; 0: unknown
  double samples_per_second = 0;  ///< 0: unknown
  double seconds_left = -1;       ///< at this speed, without evaluations; -1: unknown
  bool running = false;           ///< unfinished, and the log was written recently
};

/// Reads the logs of runs; a log that has not changed is parsed once.
class TrainingLogs {
 public:
  /// Throws std::runtime_error if the log is damaged. A run without a log yet has no series.
  TrainingLog read(const std::string& directory);

 private:
  struct Cached {
    int64_t bytes = -1;
    TrainingLog log;
  };
  std::mutex mutex_;
  std::map<std::string, Cached> cached_;
};

}  // namespace translution::serve
