#include "measure.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "translution/ops/runtime.h"

namespace translution::cli {
namespace {

constexpr double kEnoughMs = 3000;
constexpr size_t kFewest = 5;

// Resets the peak of resident memory to the current value.
bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << 5 << std::flush;
  return file.good();
}

// The peak of resident memory since the reset, in bytes.
std::optional<double> read_peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "VmHWM:" && status >> kib) return 1024 * kib;
  }
  return std::nullopt;
}

}  // namespace

double lowest(const std::vector<double>& samples) {
  return *std::min_element(samples.begin(), samples.end());
}

double highest(const std::vector<double>& samples) {
  return *std::max_element(samples.begin(), samples.end());
}

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

std::vector<double> take_turns(int64_t repeats, ProductRate& sgemm,
                               const std::function<void()>& work) {
  const Stopwatch watch;
  std::vector<double> rates;
  const auto more = [&] {
    if (repeats > 0) return static_cast<int64_t>(rates.size()) < repeats;
    return rates.size() < kFewest || watch.milliseconds() < kEnoughMs;
  };
  while (more()) {
    work();
    rates.push_back(sgemm.gflops());
  }
  return rates;
}

std::optional<double> peak_bytes(const std::function<void()>& work) {
  runtime().release_pool();  // freed memory that is still held would hide part of the peak
  malloc_trim(0);
  const auto before = reset_peak() ? read_peak() : std::nullopt;
  work();
  const auto peak = read_peak();
  if (!before || !peak) return std::nullopt;
  return *peak - *before;
}

}  // namespace translution::cli
