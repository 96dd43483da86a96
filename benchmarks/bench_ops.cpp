// Forward and backward of one layer of every method. Items are samples.

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "benchmarks/paper_layer.h"
#include "translution/core/cpu_info.h"

namespace translution {
namespace {

void forward(benchmark::State& state, Method method) {
  torch::NoGradGuard no_grad;
  auto layer = make_layer(method);
  const auto x = random_tokens(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(layer->forward(x));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void forward_backward(benchmark::State& state, Method method) {
  auto layer = make_layer(method);
  const auto x = random_tokens(state.range(0)).requires_grad_();
  for (auto _ : state) {
    layer->zero_grad();
    layer->forward(x).sum().backward();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

}  // namespace
}  // namespace translution

int main(int argc, char** argv) {
  at::set_num_threads(translution::usable_cores());
  for (const auto& method : translution::kMethods) {
    const std::string name = method.name;
    for (const bool both : {false, true}) {
      auto* run = both ? translution::forward_backward : translution::forward;
      benchmark::RegisterBenchmark((name + (both ? "/both" : "/forward")).c_str(), run,
                                   method.value)
          ->ArgName("batch")
          ->Arg(4)
          ->Arg(32)
          ->Arg(64)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
