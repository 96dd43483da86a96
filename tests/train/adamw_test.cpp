#include "translution/train/adamw.h"

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>

#include "tests/support/thread_count.h"

namespace translution {
namespace {

// Sizes that fit no vector width, one of them longer than a piece of work.
std::vector<torch::Tensor> make_parameters(torch::ScalarType type) {
  torch::manual_seed(7);
  const auto options = torch::TensorOptions().dtype(type);
  return {torch::randn({37, 5}, options).requires_grad_(),
          torch::randn({13}, options).requires_grad_(),
          torch::randn({301, 401}, options).requires_grad_()};
}

void set_gradients(std::vector<torch::Tensor>& parameters, int64_t seed) {
  torch::manual_seed(seed);
  for (auto& parameter : parameters) parameter.mutable_grad() = torch::randn_like(parameter);
}

TEST(AdamW, TakesTheStepsOfLibTorchsAdamW) {
  auto ours = make_parameters(torch::kDouble), theirs = make_parameters(torch::kDouble);
  AdamWOptions options;
  options.lr = 0.01;
  AdamW adamw(ours, options);
  torch::optim::AdamW reference(
      theirs, torch::optim::AdamWOptions(options.lr).weight_decay(0).eps(options.epsilon));
  for (int64_t step = 0; step < 5; ++step) {
    set_gradients(ours, step);
    set_gradients(theirs, step);
    adamw.step();
    reference.step();
  }
  for (size_t p = 0; p < ours.size(); ++p)
    EXPECT_LE((ours[p] - theirs[p]).abs().max().item<double>(), 1e-12);
}

TEST(AdamW, DecaysMatricesAndLeavesVectorsAlone) {
  auto parameters = make_parameters(torch::kDouble);
  const auto before = torch::clone(parameters[0]), vector = torch::clone(parameters[1]);
  for (auto& parameter : parameters) parameter.mutable_grad() = torch::zeros_like(parameter);
  AdamWOptions options;
  options.lr = 0.1;
  options.weight_decay = 0.5;
  AdamW(parameters, options).step();
  EXPECT_LE((parameters[0] - before * 0.95).abs().max().item<double>(), 1e-15);
  EXPECT_TRUE(torch::equal(parameters[1], vector));
}

TEST(AdamW, ClipsToTheGlobalNormAndReturnsTheNormBefore) {
  auto clipped = make_parameters(torch::kDouble), scaled = make_parameters(torch::kDouble);
  set_gradients(clipped, 3);
  set_gradients(scaled, 3);
  double squares = 0;
  for (const auto& parameter : clipped) squares += parameter.grad().square().sum().item<double>();
  const double norm = std::sqrt(squares);
  for (auto& parameter : scaled) parameter.mutable_grad() = parameter.grad() * (0.5 / norm);
  EXPECT_NEAR(AdamW(clipped, {}).step(0.5), norm, 1e-9 * norm);
  AdamW(scaled, {}).step();
  for (size_t p = 0; p < clipped.size(); ++p)
    EXPECT_LE((clipped[p] - scaled[p]).abs().max().item<double>(), 1e-10);
}

TEST(AdamW, ChangesNothingWhenAGradientIsNotFinite) {
  auto parameters = make_parameters(torch::kFloat);
  const auto before = torch::clone(parameters[2]);
  set_gradients(parameters, 1);
  parameters[0].mutable_grad().index_put_({0, 0}, std::numeric_limits<float>::quiet_NaN());
  AdamW adamw(parameters, {});
  EXPECT_FALSE(std::isfinite(adamw.step(1.0)));
  EXPECT_TRUE(torch::equal(parameters[2], before));
  EXPECT_EQ(adamw.state.steps, 0);
}

TEST(AdamW, GivesTheSameBitsForAnyNumberOfThreads) {
  std::vector<torch::Tensor> results;
  ThreadCount threads_now(1);
  for (const int count : {1, 2, 3}) {
    threads_now.set(count);
    auto parameters = make_parameters(torch::kFloat);
    AdamW adamw(parameters, {});
    for (int64_t step = 0; step < 3; ++step) {
      set_gradients(parameters, step);
      adamw.step(0.1);
    }
    results.push_back(parameters[2].detach().clone());
  }
  EXPECT_TRUE(torch::equal(results[0], results[1]));
  EXPECT_TRUE(torch::equal(results[0], results[2]));
}

}  // namespace
}  // namespace translution
