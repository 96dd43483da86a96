#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/cases.h"
#include "tests/support/terms.h"
#include "translution/ops/rotary.h"

namespace translution::testing {
namespace {

Config small(Method method) {
  Config config;
  config.method = method;
  config.grid = {3, 2};
  config.H = 2;
  config.D = 4;
  return config;
}

TEST(Autograd, GivesTheSameGradientAloneAndWithOthers) {
  for (const auto& entry : kMethods) {
    const Case c(small(entry.value));
    auto random = generator("alone " + c.config().str());
    const auto weight = normal(c.run().sizes(), random);
    const auto all = gradients(c, c.inputs_with_grad(), weight);
    for (const auto& [name, gradient] : all) {
      SCOPED_TRACE(c.config().str() + ", only " + name);
      auto inputs = c.inputs();
      inputs[name] = inputs[name].clone().requires_grad_(true);
      const auto one = gradients(c, inputs, weight);
      ASSERT_EQ(one.size(), 1u);
      EXPECT_LE(error(one.at(name), gradient), 1e-14);
    }
  }
}

TEST(Autograd, RecordsNothingIfNoInputRequiresGrad) {
  for (const auto& entry : kMethods) EXPECT_FALSE(Case(small(entry.value)).run().requires_grad());
}

TEST(Autograd, TheAttentionMapCarriesNoGradient) {
  TermsConfig config;
  config.q = config.k = config.v = Side::matrices;
  const TermsCase c(config);
  auto inputs = c.inputs();
  for (auto& entry : inputs) entry.second = entry.second.clone().requires_grad_(true);
  const auto result = c.attend(inputs);
  EXPECT_TRUE(result.out.requires_grad());
  EXPECT_TRUE(result.relative_out.requires_grad());
  EXPECT_FALSE(result.attention.requires_grad());
}

// Gradients of every input; zeros if autograd gives none.
std::vector<at::Tensor> all_gradients(const at::Tensor& loss, const Inputs& inputs) {
  std::vector<at::Tensor> leaves;
  for (const auto& entry : inputs) leaves.push_back(entry.second);
  auto grads = torch::autograd::grad({loss}, leaves, {}, /*retain_graph=*/true,
                                     /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t n = 0; n < grads.size(); ++n)
    if (!grads[n].defined()) grads[n] = at::zeros_like(leaves[n]);
  return grads;
}

TEST(Autograd, AnUnusedOutputDoesNotChangeGradients) {
  for (const Side side : {Side::matrices, Side::vectors})
    for (const bool relative : {false, true}) {
      TermsConfig config;
      config.q = side == Side::matrices ? side : Side::features;
      config.k = config.v = side;
      const TermsCase c(config);
      auto inputs = c.inputs();
      for (auto& entry : inputs) entry.second = entry.second.clone().requires_grad_(true);
      const auto result = c.attend(inputs);
      const auto used = relative ? result.relative_out : result.out;
      const auto unused = relative ? result.out : result.relative_out;
      const auto alone = all_gradients(used.sum(), inputs);
      const auto both = all_gradients(used.sum() + 0 * unused.sum(), inputs);
      for (size_t n = 0; n < alone.size(); ++n) EXPECT_EQ(error(alone[n], both[n]), 0) << n;
      EXPECT_GT(alone.front().abs().max().item<double>(), 0);
    }
}

// The message of the error that `work` throws.
template <typename Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "no error";
}

TEST(Autograd, ARetainedGraphGivesTheSameGradientsUntilItIsFreed) {
  for (const auto& entry : kMethods) {
    const Case c(small(entry.value));
    SCOPED_TRACE(c.config().str());
    const auto inputs = c.inputs_with_grad();
    const auto& x = inputs.at("x");
    const auto loss = c.run(inputs).square().sum();
    const auto first = torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true)[0];
    const auto second = torch::autograd::grad({loss}, {x})[0];
    EXPECT_EQ(error(first, second), 0);
    EXPECT_THAT(message_of([&] { torch::autograd::grad({loss}, {x}); }),
                ::testing::HasSubstr("backward through the graph a second time"));
  }
}

TEST(Autograd, AnInputThatWasChangedInPlaceIsRefused) {
  for (const auto& entry : kMethods) {
    const Case c(small(entry.value));
    SCOPED_TRACE(c.config().str());
    auto inputs = c.inputs_with_grad();
    const auto leaf = inputs.at("x");
    inputs["x"] = leaf * 1;
    const auto loss = c.run(inputs).sum();
    inputs["x"].mul_(2);
    EXPECT_THAT(message_of([&] { torch::autograd::grad({loss}, {leaf}); }),
                ::testing::HasSubstr("modified by an inplace operation"));
  }
}

TEST(Autograd, RotaryHasASecondDerivative) {
  auto random = generator("rotary second derivative");
  const auto x = normal({2, 6, 8}, random).requires_grad_(true);
  const auto angles = rotary_angles({3, 2}, false, 4);
  const auto loss = rotary(x, angles, 2).square().sum();  // |x|^2: a rotation preserves lengths
  const auto first = torch::autograd::grad({loss}, {x}, {}, true, /*create_graph=*/true)[0];
  EXPECT_LE(error(first, 2 * x), 1e-14);
  const auto direction = normal(x.sizes(), random);
  const auto second = torch::autograd::grad({(first * direction).sum()}, {x})[0];
  EXPECT_LE(error(second, 2 * direction), 1e-14);
}

TEST(Autograd, RotaryRefusesAGradientOfItsAngles) {
  const auto angles = rotary_angles({4}, false, 4).requires_grad_(true);
  EXPECT_THROW(rotary(at::ones({1, 4, 4}, at::kDouble), angles, 1), c10::Error);
}

}  // namespace
}  // namespace translution::testing
