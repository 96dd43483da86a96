#include "translution/train/step.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/models/tiny_models.h"

namespace translution::testing {
namespace {

using ::testing::ElementsAre;

struct Learner {
  explicit Learner(const ModelOptions& model)
      : network(seeded(model)), optimizer(network.module().parameters(), {}) {}

  StepOutcome step(const Batch& batch, const StepOptions& options) {
    return train_step(network, optimizer, batch, options, {},
                      [this](int64_t parts) { reported.push_back(parts); });
  }
  static const ModelOptions& seeded(const ModelOptions& model) {
    torch::manual_seed(kSeed);
    return model;
  }
  std::vector<torch::Tensor> weights() {
    std::vector<torch::Tensor> copies;
    for (const auto& parameter : network.module().parameters())
      copies.push_back(parameter.detach().clone());
    return copies;
  }

  Network network;
  AdamW optimizer;
  std::vector<int64_t> reported;
};

TEST(TrainStep, InPartsEqualsTheStepOfTheWholeBatch) {
  for (const auto& model : {tiny_vit(), tiny_gpt()}) {
    Learner whole(model), parts(model);
    const auto batch = random_batch(model, 7);
    const auto one = whole.step(batch, {1, 0.1, 0.5}), three = parts.step(batch, {3, 0.1, 0.5});
    EXPECT_NEAR(one.loss, three.loss, 1e-5);
    EXPECT_NEAR(one.norm, three.norm, 1e-4 * one.norm);
    EXPECT_THAT(whole.reported, ElementsAre(1));
    EXPECT_THAT(parts.reported, ElementsAre(1, 2, 3));
    const auto a = whole.weights(), b = parts.weights();
    // AdamW's first step does not depend on the size of a gradient, so rounding near 0 matters.
    for (size_t p = 0; p < a.size(); ++p) EXPECT_LE((a[p] - b[p]).abs().max().item<double>(), 2e-3);
  }
}

TEST(TrainStep, MayHaveMorePartsThanSamples) {
  const auto model = tiny_vit();
  Learner whole(model), parts(model);
  const auto batch = random_batch(model, 2);
  EXPECT_NEAR(whole.step(batch, {}).loss, parts.step(batch, {5}).loss, 1e-5);
}

TEST(TrainStep, ChangesNothingIfTheLossIsNotFinite) {
  const auto model = tiny_vit();
  Learner learner(model);
  auto batch = random_batch(model, 4);
  batch.input[3].fill_(std::numeric_limits<float>::quiet_NaN());
  const auto before = learner.weights();
  EXPECT_FALSE(std::isfinite(learner.step(batch, {2}).loss));
  EXPECT_EQ(learner.optimizer.state.steps, 0);
  const auto after = learner.weights();
  for (size_t p = 0; p < before.size(); ++p) EXPECT_TRUE(torch::equal(before[p], after[p]));
}

TEST(TrainStep, LearnsABatch) {
  const auto model = tiny_gpt();
  Learner learner(model);
  const auto batch = random_batch(model, 4);
  const double first = learner.step(batch, {}).loss;
  double last = first;
  for (int i = 0; i < 60; ++i) last = learner.step(batch, {1, 0, 1}).loss;
  EXPECT_LT(last, 0.8 * first);
}

}  // namespace
}  // namespace translution::testing
