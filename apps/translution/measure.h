#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "translution/core/precision.h"
#include "translution/kernels/bf16.h"

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

/// How fast this machine multiplies matrices: every thread its own, 1024x1024 and float, through
/// the same GEMM as the kernels.
class Sgemm {
 public:
  explicit Sgemm(int threads);
  /// GFLOP/s of all threads together, measured now: one product each.
  double gflops();

 private:
  struct Matrices {
    std::vector<float> a, b, c;
  };
  std::vector<Matrices> of_thread_;
};

/// The same for bfloat16, as the layers multiply it: every thread 448 rows by packed matrices of
/// 192x192, another in each product.
class Bf16Gemm {
 public:
  explicit Bf16Gemm(int threads);
  /// GFLOP/s of all threads together, measured now: one product with each matrix.
  double gflops();

 private:
  std::vector<kernels::Bf16> rows_, packed_;
  std::vector<std::vector<float>> products_;  // of each thread
};

/// `work` and a measurement of SGEMM in turn, so that both see the same clock and the same
/// neighbours: `repeats` times; for 0 about three seconds long, but five times at the least.
/// Returns the rates of SGEMM.
std::vector<double> take_turns(int64_t repeats, Sgemm& sgemm, const std::function<void()>& work);

/// By how much `work` raises the resident memory at its peak; nothing where the system does not
/// tell (Linux does, through /proc).
std::optional<double> peak_bytes(const std::function<void()>& work);

}  // namespace translution::cli
