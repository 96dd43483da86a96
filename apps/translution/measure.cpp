#include "measure.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "translution/kernels/gemm.h"
#include "translution/ops/parallel.h"
#include "translution/ops/runtime.h"

namespace translution::cli {
namespace {

constexpr int64_t kSide = 1024;
constexpr int64_t kBf16Rows = 448, kBf16Side = 192, kBf16Matrices = 64;
constexpr double kEnoughMs = 3000;
constexpr size_t kFewest = 5;

// Sets the peak of the resident memory back to what is resident now.
bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << 5 << std::flush;
  return file.good();
}

// The peak since then.
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

Sgemm::Sgemm(int threads) : of_thread_(threads) {
  for (auto& m : of_thread_) {
    m.a.assign(kSide * kSide, 0.5f);
    m.b.assign(kSide * kSide, 0.25f);
    m.c.assign(kSide * kSide, 0);
  }
  gflops();
}

double Sgemm::gflops() {
  const auto threads = static_cast<int64_t>(of_thread_.size());
  const Stopwatch watch;
  parallel_ranges(threads, 1, [&](int64_t begin, int64_t end) {
    const SignalsWait quiet;
    for (int64_t thread = begin; thread < end; ++thread) {
      auto& m = of_thread_[thread];
      kernels::gemm<float>(false, false, kSide, kSide, kSide, m.a.data(), kSide, m.b.data(), kSide,
                           0, m.c.data(), kSide);
    }
  });
  const auto flops = static_cast<double>(threads * 2 * kSide * kSide * kSide);
  return flops / watch.milliseconds() / 1e6;
}

Bf16Gemm::Bf16Gemm(int threads)
    : rows_(kBf16Rows * kBf16Side),
      packed_(kBf16Matrices * kernels::packed_size(kBf16Side, kBf16Side)),
      products_(threads, std::vector<float>(kBf16Rows * kBf16Side)) {
  const auto& ops = kernels::bf16_row_ops();
  ops.round(std::vector<float>(rows_.size(), 0.5f).data(), kBf16Rows * kBf16Side, rows_.data());
  const std::vector<float> matrix(kBf16Side * kBf16Side, 0.25f);
  const int64_t size = kernels::packed_size(kBf16Side, kBf16Side);
  for (int64_t m = 0; m < kBf16Matrices; ++m)
    ops.pack(matrix.data(), kBf16Side, kBf16Side, kBf16Side, packed_.data() + m * size);
  gflops();
}

double Bf16Gemm::gflops() {
  const auto threads = static_cast<int64_t>(products_.size());
  const int64_t size = kernels::packed_size(kBf16Side, kBf16Side);
  const Stopwatch watch;
  parallel_ranges(threads, 1, [&](int64_t begin, int64_t end) {
    const SignalsWait quiet;
    kernels::Bf16Products products;
    for (int64_t thread = begin; thread < end; ++thread)
      for (int64_t m = 0; m < kBf16Matrices; ++m) {
        const kernels::PackedMatrix matrix(packed_.data() + m * size, kBf16Side, kBf16Side);
        products.multiply(kBf16Rows, rows_.data(), kBf16Side, matrix, /*accumulate=*/false,
                          products_[thread].data(), kBf16Side);
      }
  });
  const auto flops =
      static_cast<double>(threads * kBf16Matrices * 2 * kBf16Rows * kBf16Side * kBf16Side);
  return flops / watch.milliseconds() / 1e6;
}

std::vector<double> take_turns(int64_t repeats, Sgemm& sgemm, const std::function<void()>& work) {
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
  runtime().release_pool();  // what was freed but not given back would hide as much of the peak
  malloc_trim(0);
  const auto before = reset_peak() ? read_peak() : std::nullopt;
  work();
  const auto peak = read_peak();
  if (!before || !peak) return std::nullopt;
  return *peak - *before;
}

}  // namespace translution::cli
