// Our layer norm compared with LibTorch's, on the shapes of vit-a/12 at batch 64 and gpt-a-160 at
// batch 8.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include "translution/core/cpu_info.h"
#include "translution/ops/layer_norm.h"

namespace translution {
namespace {

struct Norm {
  explicit Norm(const benchmark::State& state)
      : x(at::randn({state.range(0), state.range(1)}).requires_grad_(true)),
        weight(at::ones({state.range(1)}).requires_grad_(true)),
        bias(at::zeros({state.range(1)}).requires_grad_(true)),
        d(at::randn_like(x)) {}

  at::Tensor forward(bool ours) const {
    return ours ? layer_norm(x, weight, bias)
                : at::layer_norm(x, weight.sizes(), weight, bias, 1e-5);
  }

  at::Tensor x, weight, bias, d;
};

void forward(benchmark::State& state, bool ours) {
  const Norm norm(state);
  const at::NoGradGuard no_grad;
  for (auto _ : state) benchmark::DoNotOptimize(norm.forward(ours));
}

void backward(benchmark::State& state, bool ours) {
  const Norm norm(state);
  const auto out = norm.forward(ours);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        torch::autograd::grad({out}, {norm.x, norm.weight, norm.bias}, {norm.d}, true));
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"rows", "channels"})->Args({64 * 50, 192})->Args({8 * 160, 192});
  bench->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK_CAPTURE(forward, ours, true)->Apply(shapes);
BENCHMARK_CAPTURE(forward, libtorch, false)->Apply(shapes);
BENCHMARK_CAPTURE(backward, ours, true)->Apply(shapes);
BENCHMARK_CAPTURE(backward, libtorch, false)->Apply(shapes);

}  // namespace
}  // namespace translution

int main(int argc, char** argv) {
  at::set_num_threads(translution::usable_cores());
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
