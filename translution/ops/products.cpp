#include "translution/ops/products.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "translution/kernels/bf16.h"
#include "translution/kernels/gemm.h"
#include "translution/ops/parallel.h"

namespace translution {

/// Operands, allocated once, and their product.
struct ProductRate::Products {
  virtual ~Products() = default;
  virtual void multiply(int thread) = 0;  // with the operands of `thread`, on the calling thread
  virtual double flops() const = 0;       // per call of multiply
  int threads = 1;
};

namespace {

constexpr int64_t kSide = 1024;
constexpr int64_t kBf16Rows = 448, kBf16Side = 192, kBf16Matrices = 64;

class Float32Products : public ProductRate::Products {
 public:
  explicit Float32Products(int threads) : operands_(threads) {
    for (auto& o : operands_) {
      o.a.assign(kSide * kSide, 0.5f);
      o.b.assign(kSide * kSide, 0.25f);
      o.c.assign(kSide * kSide, 0);
    }
  }
  void multiply(int thread) override {
    auto& o = operands_[thread];
    kernels::gemm<float>(false, false, kSide, kSide, kSide, o.a.data(), kSide, o.b.data(), kSide, 0,
                         o.c.data(), kSide);
  }
  double flops() const override { return 2.0 * kSide * kSide * kSide; }

 private:
  struct Operands {
    std::vector<float> a, b, c;
  };
  std::vector<Operands> operands_;  // per thread
};

class Bf16Rate : public ProductRate::Products {
 public:
  explicit Bf16Rate(int threads)
      : rows_(kBf16Rows * kBf16Side),
        packed_(kBf16Matrices * kernels::packed_size(kBf16Side, kBf16Side)),
        results_(threads, std::vector<float>(kBf16Rows * kBf16Side)) {
    const auto& ops = kernels::bf16_row_ops();
    ops.round(std::vector<float>(rows_.size(), 0.5f).data(), kBf16Rows * kBf16Side, rows_.data());
    const std::vector<float> matrix(kBf16Side * kBf16Side, 0.25f);
    const int64_t size = kernels::packed_size(kBf16Side, kBf16Side);
    for (int64_t m = 0; m < kBf16Matrices; ++m)
      ops.pack(matrix.data(), kBf16Side, kBf16Side, kBf16Side, packed_.data() + m * size);
  }
  void multiply(int thread) override {
    kernels::Bf16Products products;
    const int64_t size = kernels::packed_size(kBf16Side, kBf16Side);
    for (int64_t m = 0; m < kBf16Matrices; ++m) {
      const kernels::PackedMatrix matrix(packed_.data() + m * size, kBf16Side, kBf16Side);
      products.multiply(kBf16Rows, rows_.data(), kBf16Side, matrix, /*accumulate=*/false,
                        results_[thread].data(), kBf16Side);
    }
  }
  double flops() const override { return 2.0 * kBf16Matrices * kBf16Rows * kBf16Side * kBf16Side; }

 private:
  std::vector<kernels::Bf16> rows_, packed_;
  std::vector<std::vector<float>> results_;  // per thread
};

}  // namespace

const char* product_libraries() { return kernels::gemm_libraries(); }

ProductRate::ProductRate(Precision precision, int threads) {
  if (precision == Precision::bf16)
    products_ = std::make_unique<Bf16Rate>(threads);
  else
    products_ = std::make_unique<Float32Products>(threads);
  products_->threads = threads;
  gflops();  // warm-up: touches the memory
}

ProductRate::~ProductRate() = default;

double ProductRate::gflops() {
  const auto start = std::chrono::steady_clock::now();
  parallel_ranges(products_->threads, 1, [&](int64_t begin, int64_t end) {
    const SignalsWait signals_blocked;
    for (int64_t thread = begin; thread < end; ++thread)
      products_->multiply(static_cast<int>(thread));
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return products_->threads * products_->flops() / seconds.count() / 1e9;
}

double ProductRate::best_gflops() {
  double best = 0;
  for (int i = 0; i < 5; ++i) best = std::max(best, gflops());
  return best;
}

}  // namespace translution
