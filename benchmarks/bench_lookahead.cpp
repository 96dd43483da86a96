// A text continued by the attention of gpt-a-160's twelve layers, in float32 and in bfloat16: the
// milliseconds of a token in `Lookahead`, tokens 97 to 160, the best of several texts.
//
//   bench_lookahead [layers]

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "translution/ops/lookahead.h"

namespace translution {
namespace {

constexpr int64_t kTokens = 160, kFirst = 96, kChannels = 192, kHeads = 3;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double text_ms(std::vector<Lookahead>& layers, const at::Tensor& x) {
  for (auto& layer : layers) layer.restart(), layer.gather(x.narrow(0, 0, kFirst));
  const double begin = seconds();
  for (int64_t n = kFirst + 1; n <= kTokens; ++n)
    for (auto& layer : layers) layer.gather(x.narrow(0, 0, n));
  return 1e3 * (seconds() - begin) / static_cast<double>(kTokens - kFirst);
}

void run(int64_t layers) {
  const auto offsets =
      std::make_shared<const OffsetTable>(OffsetOptions{{kTokens}, false, /*causal=*/true});
  const auto x = at::randn({kTokens, kChannels});
  std::vector<Lookahead> float32, bf16;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const auto table = [&] {
      return at::randn({offsets->num_slots(), kChannels, kChannels}) * 0.07;
    };
    const RoleWeights weights{table(), table(), table()};
    float32.emplace_back(weights, offsets, kHeads);
    bf16.emplace_back(weights, offsets, kHeads, Precision::bf16);
  }
  double best32 = 1e9, best16 = 1e9;
  for (int round = 0; round < 5; ++round) {
    best32 = std::min(best32, text_ms(float32, x));
    best16 = std::min(best16, text_ms(bf16, x));
  }
  std::printf("float32 %.2f ms, bf16 %.2f ms: %.2f times as fast\n", best32, best16,
              best32 / best16);
}

}  // namespace
}  // namespace translution

int main(int argc, char** argv) {
  const c10::InferenceMode guard;
  translution::run(argc > 1 ? std::atoll(argv[1]) : 12);
}
