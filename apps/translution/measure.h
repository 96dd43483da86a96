#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "translution/ops/products.h"

namespace translution::cli {

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

double lowest(const std::vector<double>& samples);
double highest(const std::vector<double>& samples);
double median(std::vector<double> samples);

/// Alternates `work` with a measurement of SGEMM, so that clock frequency and other processes
/// affect both alike: `repeats` times; for 0, about three seconds long and at least five times.
/// Returns the rates of SGEMM in GFLOP/s.
std::vector<double> take_turns(int64_t repeats, ProductRate& sgemm,
                               const std::function<void()>& work);

/// The peak of resident memory during `work` above that before it; nothing if the system does not
/// report it (Linux does, through /proc).
std::optional<double> peak_bytes(const std::function<void()>& work);

}  // namespace translution::cli
