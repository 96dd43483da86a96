#include <ATen/Functions.h>

#include <cstdio>

#include "translution/core/offsets.h"
#include "translution/ops/functional.h"
#include "translution/ops/runs.h"

// The operation without a module: the tables are tensors of the caller's own.
int main() {
  const int64_t batch = 2, channels = 16, heads = 2, width = heads * 8;
  translution::OffsetOptions grid;
  grid.grid = {4, 5};
  const translution::OffsetTable offsets(grid);  // 7*9 offsets between the tokens of a 4x5 grid

  const auto table = [&] {
    return at::randn({offsets.num_slots(), channels, width}).div(4).set_requires_grad(true);
  };
  const translution::RoleWeights weights{table(), table(), table()};
  translution::CallOptions call;
  call.heads = heads;
  call.runs = translution::runs_to_tensor(offsets.runs());
  call.map = true;

  const auto x = at::randn({batch, offsets.num_tokens(), channels});
  const auto attended = translution::translution(x, weights, call);
  attended.out.square().sum().backward();
  std::printf("%d offsets; the scores of a token add up to %.3f; gradient of the values: %.3f\n",
              int(offsets.num_slots()), attended.map[0][0][0].sum().item<double>(),
              weights.v.grad().norm().item<double>());
}
