#include "translution/train/adamw.h"

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>

#include "tests/support/portable_only.h"
#include "tests/support/thread_count.h"
#include "translution/ops/packed_weights.h"

namespace translution {
namespace {

// Sizes that are no multiples of a vector width; one tensor has more than 65,536 elements, a piece.
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

TEST(AdamW, MatchesLibTorchsAdamW) {
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

TEST(AdamW, DecaysMatricesButNotVectors) {
  auto parameters = make_parameters(torch::kDouble);
  const auto before = torch::clone(parameters[0]), vector = torch::clone(parameters[1]);
  for (auto& parameter : parameters) parameter.mutable_grad() = torch::zeros_like(parameter);
  AdamWOptions options;
  options.lr = 0.1;
  options.weight_decay = 0.5;
  AdamW(parameters, options).step();
  EXPECT_LE((parameters[0] - before * 0.95).abs().max().item<double>(), 1e-15);
  EXPECT_TRUE(torch::equal(parameters[1], vector));
  options.decay_vectors = true;
  AdamW(parameters, options).step();
  EXPECT_LE((parameters[1] - vector * 0.95).abs().max().item<double>(), 1e-15);
}

// 1 - beta2 in float would be off by 1e-5 of itself.
TEST(AdamW, FloatStepsAreDoubleStepsRounded) {
  auto narrow = make_parameters(torch::kFloat);
  std::vector<torch::Tensor> wide;
  for (const auto& parameter : narrow)
    wide.push_back(parameter.detach().to(torch::kDouble).requires_grad_());
  AdamWOptions options;
  options.lr = 0.5;
  AdamW ours(narrow, options), exact(wide, options);
  for (int64_t step = 0; step < 3; ++step) {
    set_gradients(narrow, step);
    for (size_t p = 0; p < wide.size(); ++p)
      wide[p].mutable_grad() = narrow[p].grad().to(torch::kDouble);
    ours.step();
    exact.step();
  }
  for (size_t p = 0; p < wide.size(); ++p)
    EXPECT_LE((narrow[p] - wide[p]).abs().max().item<double>(), 1e-6);
}

TEST(AdamW, StepOfTransposedMemoryIsThatOfContiguousMemory) {
  const auto made = make_parameters(torch::kFloat);
  const auto gradient = torch::randn_like(made[0]).detach();
  auto straight = made[0].detach().clone(), turned = straight.t().contiguous().t();
  auto first = torch::zeros_like(straight), second = torch::zeros_like(straight);
  auto turned_first = torch::zeros_like(turned), turned_second = torch::zeros_like(turned);
  ASSERT_FALSE(turned.is_contiguous());
  for (int64_t step = 1; step < 4; ++step) {
    adamw_step({}, step, 1.0, {straight}, {gradient}, {first}, {second});
    adamw_step({}, step, 1.0, {turned}, {gradient}, {turned_first}, {turned_second});
  }
  EXPECT_LE((straight - turned).abs().max().item<double>(), 1e-6);
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
  ThreadCount threads(1);
  for (const int count : {1, 2, 3}) {
    threads.set(count);
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

TEST(AdamW, LeanMemoryTakesTheSameSteps) {
  auto ready = make_parameters(torch::kFloat), lean = make_parameters(torch::kFloat);
  AdamW all(ready, {}), little(lean, {}, AdamW::Memory::lean);
  EXPECT_FALSE(little.state.first[0].defined());
  for (int64_t step = 0; step < 3; ++step) {
    set_gradients(ready, step);
    set_gradients(lean, step);
    if (step == 0) lean[1].mutable_grad() = ready[1].mutable_grad() = torch::Tensor();
    EXPECT_EQ(all.step(0.1), little.step(0.1));
    EXPECT_EQ(little.state.first[1].defined(), step > 0) << "allocated in the first update";
    for (size_t p = 0; p < ready.size(); ++p) {
      EXPECT_FALSE(lean[p].grad().defined());
      EXPECT_TRUE(torch::equal(ready[p], lean[p])) << p;
      if (!little.state.second[p].defined()) continue;
      EXPECT_TRUE(torch::equal(all.state.second[p], little.state.second[p])) << p;
    }
  }
}

// Other devices use the portable implementation.
TEST(AdamW, PortableTakesTheSameSteps) {
  auto fused = make_parameters(torch::kDouble), portable = make_parameters(torch::kDouble);
  AdamWOptions options;
  options.weight_decay = 0.1;
  AdamW fused_adamw(fused, options), portable_adamw(portable, options);
  for (int64_t step = 0; step < 5; ++step) {
    set_gradients(fused, step);
    set_gradients(portable, step);
    const double norm = fused_adamw.step(0.5);
    const PortableOnly portable_only;
    EXPECT_NEAR(portable_adamw.step(0.5), norm, 1e-12 * norm);
  }
  for (size_t p = 0; p < fused.size(); ++p)
    EXPECT_LE((fused[p] - portable[p]).abs().max().item<double>(), 1e-12) << p;
}

TEST(AdamW, PortableLeavesNoStalePackedCopy) {
  auto parameters = make_parameters(torch::kFloat);
  const auto before = packed_weight(parameters[2], false, /*forward=*/true).clone();
  AdamW adamw(parameters, {});
  set_gradients(parameters, 1);
  {
    const PortableOnly portable_only;
    adamw.step();
  }
  const auto after = packed_weight(parameters[2], false, /*forward=*/false);
  EXPECT_FALSE(torch::equal(after, before));
  EXPECT_TRUE(torch::equal(after, pack_weight(parameters[2], false)));
}

}  // namespace
}  // namespace translution
