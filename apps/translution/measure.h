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

/// `work` and a measurement of SGEMM in turn, so that both see the same clock and the same
/// neighbours: `repeats` times; for 0 about three seconds long, but five times at the least.
/// Returns the rates of SGEMM.
std::vector<double> take_turns(int64_t repeats, ProductRate& sgemm,
                               const std::function<void()>& work);

/// By how much `work` raises the resident memory at its peak; nothing where the system does not
/// tell (Linux does, through /proc).
std::optional<double> peak_bytes(const std::function<void()>& work);

}  // namespace translution::cli
