#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace translution {

/// What this process reads and writes per training step, and its memory, for the log.
class Usage {
 public:
  Usage();

  void add_step() { ++steps_; }
  /// Since the last call: "seconds_per_step" from the seconds given, "read_mib_per_step" and
  /// "written_mib_per_step"; and "peak_resident_mib" since the process started.
  std::vector<std::pair<std::string, double>> take(double seconds);

 private:
  struct Bytes {
    double read = 0, written = 0;  // 0 if the system does not report them
  };
  static Bytes now();

  Bytes before_;
  int64_t steps_ = 0;
};

}  // namespace translution
