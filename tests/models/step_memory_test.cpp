// A training step takes no more memory than `translution info` says.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/nn/positions.h"
#include "tests/support/peak_memory.h"
#include "translution/kernels/slot_plan.h"
#include "translution/models/cost.h"
#include "translution/models/vit.h"

namespace translution {
namespace {

// Freed memory that is not reused and the scratch buffers of threads are not counted. Measured: 0.7
// to 1.10 times the counted memory.
constexpr double kTolerance = 1.13;

// Two layers on 12x12 patches and a class token.
ModelOptions patch_model(const Position& position, int64_t dim, int64_t heads) {
  ModelOptions options;
  options.architecture = {"patches", 2, dim, heads, dim, dim / heads};
  options.image_size = {24, 24};
  options.patch_size = 2;
  options.channels = 1;
  options.classes = 3;
  options.position = position;
  return options;
}

void expect_within_count(const ModelOptions& options, int64_t batch) {
  const auto cost = model_cost(options, batch);
  torch::manual_seed(kSeed);
  ViT model(options);
  const auto images = torch::randn({batch, 1, 24, 24});
  const auto drop_gradients = [&] {
    for (auto& parameter : model->parameters()) parameter.mutable_grad() = torch::Tensor();
  };
  const auto step = [&] { model->forward(images).sum().backward(); };
  step();  // warm-up: libraries load code and start threads
  drop_gradients();
  const double growth = testing::peak_growth(step);
  if (growth < 0) GTEST_SKIP() << "/proc does not report the peak memory";
  // The weights are allocated before the step, and there are no moments.
  const double counted = (cost.training_bytes - 3 * cost.weight_bytes) / testing::kMegabyte;
  const double accumulators = cost.accumulator_bytes / testing::kMegabyte;
  std::printf("grew by %.0f MB at most, counted %.0f MB, accumulators %.0f MB\n", growth, counted,
              accumulators);
  EXPECT_LE(growth, kTolerance * counted);
}

TEST(StepMemory, OfTranslutionIsWithinTheCount) {
  expect_within_count(patch_model({}, /*dim=*/96, /*heads=*/2), /*batch=*/4);
  Position position;
  position.roles = Roles::parse("qv");
  expect_within_count(patch_model(position, /*dim=*/96, /*heads=*/2), /*batch=*/4);
}

TEST(StepMemory, OfAlphaIsWithinTheCount) {
  Position position;
  position.method = Method::alpha_translution;
  for (const int64_t relative_dim : {8, 32}) {
    position.relative_dim = relative_dim;
    for (const int64_t batch : {4, 16, 64})
      expect_within_count(patch_model(position, /*dim=*/96, /*heads=*/2), batch);
  }
}

TEST(StepMemory, OfSelfAttentionIsWithinTheCount) {
  Position position;
  position.method = Method::self_attention;
  for (const int64_t batch : {4, 16, 64})
    expect_within_count(patch_model(position, /*dim=*/96, /*heads=*/2), batch);
}

// The accumulators that the kernels allocate for a layer's slot plan; twice if queries and keys
// have different features.
TEST(ModelCost, CountsTheAccumulators) {
  constexpr int64_t kBatch = 4, kTokens = 145, kDim = 96;
  OffsetOptions offsets;
  offsets.grid = {12, 12};
  offsets.cls = true;
  const auto plan = *kernels::slot_plan(*find_pairs({pairs_text(offsets)}), kBatch, kDim);
  EXPECT_GT(plan.counts.sums, 8);
  constexpr int64_t kPage = 2 << 20;  // large tensors take whole pages
  const int64_t pages = (4 * plan.counts.sums * kBatch * kTokens * kDim + kPage - 1) / kPage;
  const auto bytes = static_cast<double>(pages * kPage);
  Position position;
  const auto cost = model_cost(patch_model(position, kDim, 2), kBatch);
  EXPECT_EQ(cost.accumulator_bytes, bytes);
  EXPECT_GT(cost.training_bytes, 4 * cost.weight_bytes + bytes);
  position.roles = Roles::parse("qv");
  EXPECT_EQ(model_cost(patch_model(position, kDim, 2), kBatch).accumulator_bytes, 2 * bytes);
  position.method = Method::self_attention;
  EXPECT_EQ(model_cost(patch_model(position, kDim, 2), kBatch).accumulator_bytes, 0);
}

}  // namespace
}  // namespace translution
