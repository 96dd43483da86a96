// Compares products of bfloat16 with SGEMM on one thread. Reports the best of many short,
// interleaved bursts, so that ratios of columns are reliable even on a shared machine.
//
//   bench_bf16 [products|gradients|scores|content|few|rows] [--quick]
//
// Prints one table, or all by default. --quick checks that every table works, with few
// measurements.

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "translution/kernels/bf16.h"
#include "translution/kernels/content_bf16.h"
#include "translution/kernels/gemm.h"
#include "translution/kernels/row_ops.h"

namespace translution::kernels {

using namespace detail;

namespace {

constexpr double kBurstSeconds = 0.002;

struct Settings {
  int bursts = 20;
  int64_t many_bytes = int64_t{64} << 20;  // of packed matrices: exceeds the caches
  std::vector<int64_t> widths = {192, 384, 768};
  std::vector<int64_t> rows = {4, 16, 64, 128, 448, 1792};
  std::vector<int64_t> rows_of_scores = {64, 448, 1792};
  std::vector<int64_t> few_rows = {1, 2, 4, 8, 16, 24, 32, 48, 64};
};
Settings settings;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A timed function; its argument is the number of the call.
using Work = std::function<void(int64_t)>;

double burst(const Work& work, int64_t& call) {
  const double begin = seconds();
  double now = begin;
  int64_t count = 0;
  for (; now - begin < kBurstSeconds; now = seconds(), ++count) work(call++);
  return (now - begin) / static_cast<double>(count);
}

// The shortest time per call of each function.
std::vector<double> best_seconds(const std::vector<Work>& works) {
  std::vector<double> best(works.size(), INFINITY);
  int64_t call = 0;
  for (int round = 0; round < settings.bursts; ++round)
    for (size_t i = 0; i < works.size(); ++i) best[i] = std::min(best[i], burst(works[i], call));
  return best;
}

std::vector<float> numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) / 16 - 0.375f;
  return values;
}

std::vector<Bf16> rounded(const std::vector<float>& values) {
  std::vector<Bf16> out(values.size());
  bf16_row_ops().round(values.data(), static_cast<int64_t>(values.size()), out.data());
  return out;
}

// `count` matrices [C,C], packed one after the other and aligned to cache lines.
class PackedMatrices {
 public:
  PackedMatrices(const std::vector<float>& w, int64_t C, int64_t count)
      : C_(C), count_(count), size_(packed_size(C, C)) {
    tiles_.reset(
        static_cast<Bf16*>(std::aligned_alloc(64, static_cast<size_t>(count * size_) * 2)));
    for (int64_t i = 0; i < count; ++i)
      bf16_row_ops().pack(w.data() + i * C * C, C, C, C, tiles_.get() + i * size_);
  }

  PackedMatrix operator[](int64_t call) const {
    return {tiles_.get() + call % count_ * size_, C_, C_};
  }

 private:
  struct Free {
    void operator()(Bf16* memory) const { std::free(memory); }
  };
  int64_t C_, count_, size_;
  std::unique_ptr<Bf16, Free> tiles_;
};

int64_t matrices(int64_t C, bool many) { return many ? settings.many_bytes / (2 * C * C) : 1; }

// One instruction set per implementation: all sets below avx512_bf16 use the same one.
std::vector<Isa> measured_isas() {
  const auto isas = available_isas();
  std::vector<Isa> result = {std::min(isas.back(), Isa::avx512)};
  for (const Isa isa : isas)
    if (isa >= Isa::avx512_bf16) result.push_back(isa);
  return result;
}

std::vector<std::unique_ptr<Bf16Products>> passes() {
  std::vector<std::unique_ptr<Bf16Products>> result;
  for (const Isa isa : measured_isas()) result.push_back(std::make_unique<Bf16Products>(isa));
  return result;
}

void require_close(const std::vector<float>& got, const std::vector<float>& expected) {
  for (size_t i = 0; i < got.size(); ++i)
    require(std::abs(got[i] - expected[i]) <= 1e-3f * (1 + std::abs(expected[i])),
            "bench_bf16: expected the product of SGEMM, got another");
}

void print_header(const char* title) {
  std::printf("\n%s, GFLOP/s\n  K=N   rows   matrix    SGEMM", title);
  for (const Isa isa : measured_isas())
    std::printf("%13s", isa < Isa::avx512_bf16 ? "plain" : name_of(kIsas, isa));
  std::printf("   best/SGEMM\n");
}

void print_line(int64_t C, int64_t rows, bool many, const std::vector<double>& times) {
  const double flops = 2e-9 * static_cast<double>(rows * C * C);
  std::printf("%5d%7d%9s%9.0f", static_cast<int>(C), static_cast<int>(rows),
              many ? "varying" : "same", flops / times[0]);
  for (size_t i = 1; i < times.size(); ++i) std::printf("%13.0f", flops / times[i]);
  std::printf("%13.2f\n", times[0] / *std::min_element(times.begin() + 1, times.end()));
  std::fflush(stdout);
}

// Y = X W, with a different W for each call or the same one.
void time_products(int64_t C, int64_t rows, bool many) {
  const int64_t count = matrices(C, many);
  const auto x = numbers(rows * C), w = numbers(C * C * count);
  const auto x16 = rounded(x);
  const PackedMatrices packed(w, C, count);
  std::vector<float> y(x.size()), expected(x.size());
  const auto all = passes();
  std::vector<Work> works = {[&](int64_t call) {
    gemm<float>(false, false, rows, C, C, x.data(), C, w.data() + call % count * C * C, C, 0,
                expected.data(), C);
  }};
  for (const auto& pass : all)
    works.push_back([&, products = pass.get()](int64_t call) {
      products->multiply(rows, x16.data(), C, packed[call], false, y.data(), C);
    });
  works[0](0);
  for (size_t i = 1; i < works.size(); ++i) works[i](0), require_close(y, expected);
  print_line(C, rows, many, best_seconds(works));
}

// dW += X^T dY, with a different dW for each call or the same one.
void time_gradients(int64_t C, int64_t rows, bool many) {
  const int64_t count = matrices(C, many);
  const auto x = numbers(rows * C), dy = numbers(rows * C);
  const auto x16 = rounded(x), dy16 = rounded(dy);
  std::vector<float> dw(static_cast<size_t>(C * C * count));
  const auto all = passes();
  std::vector<Work> works = {[&](int64_t call) {
    gemm<float>(true, false, C, C, rows, x.data(), C, dy.data(), C, 1,
                dw.data() + call % count * C * C, C);
  }};
  for (const auto& pass : all)
    works.push_back([&, products = pass.get()](int64_t call) {
      products->weight_gradient(rows, C, C, x16.data(), C, dy16.data(), C, true,
                                dw.data() + call % count * C * C, C);
    });
  std::vector<float> expected;
  for (const Work& work : works) {
    std::fill_n(dw.begin(), C * C, 0.0f);
    work(0);
    const std::vector<float> got(dw.begin(), dw.begin() + C * C);
    if (expected.empty()) expected = got;
    require_close(got, expected);
  }
  print_line(C, rows, many, best_seconds(works));
}

void print_table(const char* title, void (*time)(int64_t, int64_t, bool)) {
  print_header(title);
  for (const int64_t C : settings.widths)
    for (const int64_t rows : settings.rows)
      for (const bool many : {false, true}) time(C, rows, many);
}

// The scores of a chunk and its saved encodings: q and k, rounded, and their dot products by head.
// Computed in blocks of rows, so that encodings are read while they are in the cache.
class Scores {
 public:
  static constexpr int64_t C = 192, H = 3;

  explicit Scores(int64_t rows)
      : rows_(rows),
        x_(rounded(numbers(rows * C))),
        q_(x_.size()),
        k_(x_.size()),
        scores_(static_cast<size_t>(rows * H)) {}

  void only_products(Bf16Products& products, const PackedMatrix& wq, const PackedMatrix& wk) {
    products.multiply_rounded(rows_, x_.data(), C, wq, q_.data());
    products.multiply_rounded(rows_, x_.data(), C, wk, k_.data());
  }

  void run(Bf16Products& products, const PackedMatrix& wq, const PackedMatrix& wk, int64_t most) {
    for (int64_t row = 0; row < rows_; row += most) {
      const int64_t count = std::min(most, rows_ - row), at = row * C;
      products.multiply_rounded(count, x_.data() + at, C, wq, q_.data() + at);
      products.multiply_rounded(count, x_.data() + at, C, wk, k_.data() + at);
      bf16_row_ops().heads.dots(q_.data() + at, k_.data() + at, count, H, C / H,
                                scores_.data() + row * H);
    }
  }

 private:
  const int64_t rows_;
  std::vector<Bf16> x_, q_, k_;
  std::vector<float> scores_;
};

void time_scores(int64_t rows) {
  constexpr int64_t C = Scores::C;
  const int64_t count = matrices(C, true);
  const PackedMatrices packed(numbers(C * C * count), C, count);
  Scores scores(rows);
  Bf16Products products;
  std::vector<Work> works = {[&](int64_t call) {
    scores.only_products(products, packed[2 * call], packed[2 * call + 1]);
  }};
  for (const int64_t most : {int64_t{16}, int64_t{32}, int64_t{64}, int64_t{256}, rows})
    works.push_back([&, most](int64_t call) {
      scores.run(products, packed[2 * call], packed[2 * call + 1], most);
    });
  std::printf("%6d", static_cast<int>(rows));
  for (const double time : best_seconds(works))
    std::printf("%9.0f", 4e-9 * static_cast<double>(rows * C * C) / time);
  std::printf("\n");
  std::fflush(stdout);
}

void print_scores() {
  std::printf(
      "\nq = X Wq, k = X Wk, rounded, and their dot products, by rows at a time, %s, GFLOP/s\n"
      "  rows products       16       32       64      256      all\n",
      name_of(kIsas, chosen_isa()));
  for (const int64_t rows : settings.rows_of_scores) time_scores(rows);
}

// Few rows times an unpacked matrix, a different one for each call: read directly, or packed 64
// columns at a time. float32 uses the libraries. Reports GB/s of weights.
void time_few(int64_t C, int64_t rows, bool transposed) {
  const int64_t count = matrices(C, true);
  const auto x = numbers(rows * C), w = numbers(C * C * count);
  const auto x16 = rounded(x), w16 = rounded(w);
  const PackedMatrices ready(w, C, count);
  std::vector<float> y(x.size()), expected(x.size());
  std::vector<Bf16> strip(static_cast<size_t>(packed_size(C, 64)));
  const Bf16RowOps& ops = bf16_row_ops();
  Bf16Products products;
  const std::vector<Work> works = {
      [&](int64_t call) {
        gemm<float>(false, transposed, rows, C, C, x.data(), C, w.data() + call % count * C * C, C,
                    0, expected.data(), C);
      },
      [&](int64_t call) {
        products.multiply(rows, x16.data(), C, ready[call], false, y.data(), C);
      },
      [&](int64_t call) {
        const auto product = transposed ? ops.few_rows_transposed : ops.few_rows;
        product(
            {rows, C, C, x16.data(), C, w16.data() + call % count * C * C, C, y.data(), C, false});
      },
      [&](int64_t call) {
        const Bf16* const matrix = w16.data() + call % count * C * C;
        for (int64_t column = 0; column < C; column += 64) {
          if (transposed)
            ops.pack_transposed_bf16(matrix + column * C, C, C, 64, strip.data());
          else
            ops.pack_bf16(matrix + column, C, C, 64, strip.data());
          products.multiply(rows, x16.data(), C, PackedMatrix(strip.data(), C, 64), false,
                            y.data() + column, C);
        }
      }};
  for (const size_t i : {0, 2, 3}) works[i](0), i > 0 ? require_close(y, expected) : void();
  const auto times = best_seconds(works);
  std::printf("%5d%7d%11s", static_cast<int>(C), static_cast<int>(rows), transposed ? "W^T" : "W");
  for (size_t i = 0; i < times.size(); ++i)
    std::printf("%11.1f", 1e-9 * static_cast<double>(C * C * (i == 0 ? 4 : 2)) / times[i]);
  std::printf("%11.2f\n", times[0] / std::min(times[2], times[3]));
  std::fflush(stdout);
}

void print_few_rows() {
  std::printf(
      "\nFew rows times a different matrix per call, %s, GB/s\n"
      "  K=N   rows     matrix    float32     packed     direct     strips      times\n",
      name_of(kIsas, chosen_isa()));
  for (const int64_t C : settings.widths)
    for (const bool transposed : {false, true})
      for (const int64_t rows : settings.few_rows) time_few(C, rows, transposed);
}

// The passes of plain attention, one sample of three heads at a time.
void time_content(int64_t tokens) {
  constexpr int64_t B = 16, H = 3, D = 64, E = H * D;
  const int64_t map = H * tokens * tokens;
  const auto x = numbers(B * tokens * E), maps = numbers(B * map);
  std::vector<float> dx(x.size()), dy(x.size()), d_maps(maps.size());
  const Features<const float> in{x.data(), tokens * E, E};
  const Features<float> first{dx.data(), tokens * E, E}, second{dy.data(), tokens * E, E};
  const ContentPasses<float>::Shape shape{H, tokens, tokens, D, D};
  ContentPasses<float> plain(shape);
  Bf16ContentPasses rounded_passes(shape);
  std::vector<Work> works;
  const auto add = [&](auto& passes) {
    works.push_back([&](int64_t call) {
      passes.scores(call % B * H, (call % B + 1) * H, in, in, d_maps.data());
    });
    works.push_back([&](int64_t call) {
      passes.values(call % B * H, (call % B + 1) * H, maps.data(), in, first);
    });
    works.push_back([&](int64_t call) {
      passes.values_backward(call % B * H, (call % B + 1) * H, maps.data(), in, in, d_maps.data(),
                             first);
    });
    works.push_back([&](int64_t call) {
      passes.scores_backward(call % B * H, (call % B + 1) * H, in, in, maps.data(), first, second);
    });
  };
  add(plain), add(rounded_passes);
  const auto times = best_seconds(works);
  const char* const names[] = {"scores", "values", "values backward", "scores backward"};
  for (int pass = 0; pass < 4; ++pass) {
    const double flops = (pass < 2 ? 2e-9 : 4e-9) * static_cast<double>(map * D);
    std::printf("%6d  %-16s%9.0f%9.0f%9.2f\n", static_cast<int>(tokens), names[pass],
                flops / times[pass], flops / times[4 + pass], times[pass] / times[4 + pass]);
  }
  std::fflush(stdout);
}

void print_content() {
  std::printf(
      "\nPlain attention, heads of 64 channels, %s, GFLOP/s\ntokens  pass              float32     "
      "bf16    times\n",
      name_of(kIsas, chosen_isa()));
  for (const int64_t tokens : {50, 160, 197}) time_content(tokens);
}

void print_rows() {
  constexpr int64_t C = 192, H = 3, rows = 448;
  const auto x = numbers(rows * C), weight = numbers(rows * H);
  const auto x16 = rounded(x);
  std::vector<Bf16> out(x.size());
  std::vector<float> wide(x.size()), dots(weight.size());
  std::printf("\nRows in bfloat16, %d of %d, elements per nanosecond\n%13s", int{rows}, int{C}, "");
  for (const char* name :
       {"round", "widen", "pack", "bf16", "transposed", "bf16", "X^T", "dots", "scale", "add"})
    std::printf("%8s", name);
  for (const Isa isa : available_isas()) {
    const Bf16RowOps& ops = bf16_row_ops(isa);
    const std::vector<Work> works = {
        [&](int64_t) { ops.round(x.data(), rows * C, out.data()); },
        [&](int64_t) { ops.widen(x16.data(), rows * C, wide.data()); },
        [&](int64_t) { ops.pack(x.data(), C, rows, C, out.data()); },
        [&](int64_t) { ops.pack_bf16(x16.data(), C, rows, C, out.data()); },
        [&](int64_t) { ops.pack_transposed(x.data(), C, C, rows, out.data()); },
        [&](int64_t) { ops.pack_transposed_bf16(x16.data(), C, C, rows, out.data()); },
        [&](int64_t) { ops.transpose(x16.data(), C, rows, C, out.data(), rows); },
        [&](int64_t) { ops.heads.dots(x16.data(), x16.data(), rows, H, C / H, dots.data()); },
        [&](int64_t) { ops.heads.scale(weight.data(), x16.data(), rows, H, C / H, out.data()); },
        [&](int64_t) {
          ops.heads.add_scaled(weight.data(), x16.data(), rows, H, C / H, wide.data());
        }};
    std::printf("\n%13s", name_of(kIsas, isa));
    for (const double time : best_seconds(works))
      std::printf("%8.1f", 1e-9 * static_cast<double>(rows * C) / time);
  }
  std::printf("\n");
}

void run(std::vector<std::string> arguments) {
  const auto quick = std::find(arguments.begin(), arguments.end(), "--quick");
  if (quick != arguments.end()) {
    settings = {1, int64_t{1} << 20, {192}, {4}, {64}, {1}};
    arguments.erase(quick);
  }
  const std::string what = arguments.empty() ? "" : arguments[0];
  const bool all = what.empty();
  if (all || what == "products") print_table("Y = X W", time_products);
  if (all || what == "gradients") print_table("dW += X^T dY", time_gradients);
  if (all || what == "scores") print_scores();
  if (all || what == "few") print_few_rows();
  if (all || what == "content") print_content();
  if (all || what == "rows") print_rows();
}

}  // namespace
}  // namespace translution::kernels

int main(int argc, char** argv) {
  omp_set_num_threads(1);
  translution::kernels::run({argv + 1, argv + argc});
}
