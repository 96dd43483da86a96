// Forward and backward of one layer of every method: 7x7 patches and a class token, 192 channels,
// 3 heads. Items are samples.

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "translution/core/cpu_info.h"
#include "translution/nn/attention.h"

namespace translution {
namespace {

constexpr int64_t kDim = 192, kHeads = 3, kDimHead = 64, kSide = 7;

Attention make_layer(Method method) {
  Position position;
  position.method = method;
  return Attention(AttentionOptions(kDim)
                       .heads(kHeads)
                       .dim_head(kDimHead)
                       .grid({kSide, kSide})
                       .cls(true)
                       .position(position));
}

void forward(benchmark::State& state, Method method) {
  torch::NoGradGuard no_grad;
  auto layer = make_layer(method);
  const auto x = torch::randn({state.range(0), kSide * kSide + 1, kDim});
  for (auto _ : state) benchmark::DoNotOptimize(layer->forward(x));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void forward_backward(benchmark::State& state, Method method) {
  auto layer = make_layer(method);
  const auto x = torch::randn({state.range(0), kSide * kSide + 1, kDim}).requires_grad_();
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
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
