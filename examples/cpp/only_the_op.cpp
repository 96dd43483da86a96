#include <ATen/Functions.h>

#include <cstdio>

#include "translution/core/pairs.h"
#include "translution/ops/methods.h"

// The op without a module: the caller owns the weight tables.
int main() {
  const int64_t batch = 2, channels = 16, heads = 2, width = heads * 8;
  translution::AttentionCall call;
  call.heads = heads;
  call.pairs.text = "4x5";
  call.map = true;
  const auto pairs =
      translution::find_pairs({"4x5"});  // 7*9 offsets between the tokens of the grid

  const auto table = [&] {
    return at::randn({pairs->slot_count(), channels, width}).div(4).set_requires_grad(true);
  };
  const translution::RoleWeights weights{table(), table(), table()};

  const auto x = at::randn({batch, pairs->tokens(), channels});
  const auto attended = translution::translution(x, weights, call);
  attended.out.square().sum().backward();
  std::printf("%d offsets; the scores of a token add up to %.3f; gradient of the values: %.3f\n",
              int(pairs->slot_count()), attended.map[0][0][0].sum().item<double>(),
              weights.v.grad().norm().item<double>());
}
