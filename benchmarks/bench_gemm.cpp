// The matrix products of a layer, on one thread: wide products, those of alpha-Translution's narrow
// relative part with channels innermost, and the same with samples innermost.

#include <benchmark/benchmark.h>
#include <omp.h>

#include <vector>

#include "translution/kernels/gemm.h"

namespace translution::kernels {
namespace {

constexpr int64_t kWide = 192, kNarrow = 24;
constexpr int64_t kTokens = 50;  // multiplied by a slot's matrix

std::vector<float> numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3.0f;
  return values;
}

void count_flops(benchmark::State& state, int64_t flops) {
  state.counters["GFLOP/s"] = benchmark::Counter(
      1e-9 * static_cast<double>(flops * state.iterations()), benchmark::Counter::kIsRate);
}

// All tokens of all samples times one matrix, as layers compute it and by our own kernels.
void tokens_by_matrix(benchmark::State& state, GemmFunction<float> multiply) {
  const int64_t C = state.range(0), rows = kTokens * state.range(1);
  const auto x = numbers(rows * C), table = numbers(C * C);
  auto y = numbers(rows * C);
  for (auto _ : state)
    multiply({false, false, rows, C, C, x.data(), C, table.data(), C, 0, y.data(), C});
  count_flops(state, 2 * rows * C * C);
}

// The gradient of a matrix from the tokens of all samples.
void gradient_by_tokens(benchmark::State& state, GemmFunction<float> multiply) {
  const int64_t C = state.range(0), rows = kTokens * state.range(1);
  const auto x = numbers(rows * C), dy = numbers(rows * C);
  auto dtable = numbers(C * C);
  for (auto _ : state)
    multiply({true, false, C, C, rows, x.data(), C, dy.data(), C, 1, dtable.data(), C});
  count_flops(state, 2 * rows * C * C);
}

// The same with tokens as [channels, samples].
void matrix_by_token(benchmark::State& state) {
  const int64_t C = kNarrow, B = state.range(0);
  const auto x = numbers(kTokens * C * B), table = numbers(C * C);
  auto y = numbers(kTokens * C * B);
  SmallGemm<float> product(true, C, B, C, C, B, 0, B);
  for (auto _ : state)
    for (int64_t t = 0; t < kTokens; ++t)
      product(table.data(), x.data() + t * C * B, y.data() + t * C * B);
  count_flops(state, 2 * kTokens * C * C * B);
}

// The gradient of the matrix, from [channels, samples] and [samples, channels].
void matrix_gradient(benchmark::State& state) {
  const int64_t C = kNarrow, B = state.range(0);
  const auto x = numbers(kTokens * C * B), dy = numbers(kTokens * C * B);
  auto dtable = numbers(C * C);
  SmallGemm<float> product(false, C, C, B, B, C, 1, C);
  for (auto _ : state)
    for (int64_t t = 0; t < kTokens; ++t)
      product(x.data() + t * C * B, dy.data() + t * C * B, dtable.data());
  count_flops(state, 2 * kTokens * C * C * B);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"channels", "samples"})
      ->Args({kWide, 2})
      ->Args({kWide, 16})
      ->Args({kWide, 64})
      ->Args({kNarrow, 64});
}

BENCHMARK_CAPTURE(tokens_by_matrix, layer, gemm<float>)->Apply(sizes);
BENCHMARK_CAPTURE(tokens_by_matrix, own, gemm_function<float>(chosen_isa()))->Apply(sizes);
BENCHMARK_CAPTURE(gradient_by_tokens, layer, gemm<float>)->Apply(sizes);
BENCHMARK_CAPTURE(gradient_by_tokens, own, gemm_function<float>(chosen_isa()))->Apply(sizes);
BENCHMARK(matrix_by_token)->ArgName("samples")->Arg(16)->Arg(32)->Arg(64)->Arg(256);
BENCHMARK(matrix_gradient)->ArgName("samples")->Arg(16)->Arg(32)->Arg(64)->Arg(256);

}  // namespace
}  // namespace translution::kernels

int main(int argc, char** argv) {
  omp_set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
