// Derivatives of derivatives, against finite differences of the first ones.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>

#include "tests/support/cases.h"
#include "tests/support/numeric_gradient.h"
#include "translution/ops/cross_entropy.h"
#include "translution/ops/fixed_sum.h"
#include "translution/ops/gelu.h"
#include "translution/ops/layer_norm.h"
#include "translution/ops/project.h"
#include "translution/ops/register.h"

namespace translution::testing {
namespace {

using Tensors = std::vector<at::Tensor>;

// The derivative of sum(weight * function(inputs)^2) along a random direction of all inputs.
Function derivative_of(const Function& function, const Inputs& inputs, const std::string& name) {
  auto random = generator("second derivative of " + name);
  const auto weight = normal(function(inputs).sizes(), random);
  Inputs directions;
  for (const auto& [input, tensor] : inputs) directions[input] = normal(tensor.sizes(), random);
  return [=](const Inputs& given) {
    Tensors leaves;
    Inputs recorded = given;
    for (auto& [input, tensor] : recorded) {
      if (!tensor.requires_grad()) tensor = tensor.detach().clone().requires_grad_(true);
      leaves.push_back(tensor);
    }
    const auto loss = (function(recorded).square() * weight).sum();
    const auto first = torch::autograd::grad({loss}, leaves, {}, /*retain_graph=*/true,
                                             /*create_graph=*/true);
    at::Tensor sum = at::zeros({1}, at::kDouble);
    size_t n = 0;
    for (const auto& entry : recorded) sum = sum + (first[n++] * directions.at(entry.first)).sum();
    return sum;
  };
}

void expect_second_derivatives(const Function& function, const Inputs& inputs,
                               const std::string& name) {
  expect_directional_gradients(derivative_of(function, inputs, name), inputs, name);
}

Config small(Method method) {
  Config config;
  config.method = method;
  config.grid = {3, 2};
  config.H = 2;
  config.D = 4;
  return config;
}

void expect_second_derivatives(const Config& config) {
  const Case c(config);
  expect_second_derivatives([&](const Inputs& inputs) { return c.run(inputs); }, c.inputs(),
                            config.str());
}

TEST(SecondDerivative, OfEveryMethod) {
  for (const auto& entry : kMethods) expect_second_derivatives(small(entry.value));
}

TEST(SecondDerivative, WithClassTokenRowsBiasesAndPadding) {
  for (const auto& entry : kMethods) {
    auto config = small(entry.value);
    config.cls = true;
    config.rows = {3, 0};
    config.mask = true;
    config.biases = entry.value != Method::convolution;
    expect_second_derivatives(config);
  }
}

TEST(SecondDerivative, OfSomeRelativeRoles) {
  for (const Method method : {Method::translution, Method::alpha_translution})
    for (const char* roles : {"q", "kv", "v"}) {
      auto config = small(method);
      config.roles = Roles::parse(roles);
      config.causal = true;
      config.mixing = Mixing::mean;
      expect_second_derivatives(config);
    }
}

TEST(SecondDerivative, WithAGivenDropoutMask) {
  auto config = small(Method::translution);
  config.dropout = 0.3;
  expect_second_derivatives(config);
}

TEST(SecondDerivative, OfAQueryWithoutPairs) {
  auto config = small(Method::translution);
  config.relation = {0, 1, -1, -1, -1, -1, 1, -1, 0};  // the second token attends to none
  config.mirror = {0, 1};
  config.grid = {3};
  expect_second_derivatives(config);
}

// The functions of a network around attention, as functions of "x", "w" and "b".
std::map<std::string, std::pair<Function, Inputs>> functions() {
  auto random = generator("functions");
  const auto make = [&](at::IntArrayRef shape) { return normal(shape, random); };
  const auto target = at::tensor({2, 0, 1}, at::kLong);
  const Inputs layer = {{"x", make({3, 4})}, {"w", make({4, 5})}, {"b", make({5})}};
  return {
      {"project",
       {[](const Inputs& t) { return project(t.at("x"), {t.at("w")}, {t.at("b")})[0]; }, layer}},
      {"project transposed",
       {[](const Inputs& t) {
          return project(t.at("x"), {t.at("w").t()}, {}, true)[0] * t.at("b");
        },
        layer}},
      {"layer_norm",
       {[](const Inputs& t) { return layer_norm(t.at("x"), t.at("w"), t.at("b"), 1e-5); },
        {{"x", make({3, 5})}, {"w", make({5})}, {"b", make({5})}}}},
      {"gelu", {[](const Inputs& t) { return gelu(t.at("x"), false); }, {{"x", make({3, 4})}}}},
      {"gelu tanh", {[](const Inputs& t) { return gelu(t.at("x"), true); }, {{"x", make({3, 4})}}}},
      {"cross_entropy",
       {[=](const Inputs& t) { return cross_entropy(t.at("x"), target, 0.1); },
        {{"x", make({3, 4})}}}},
      {"add_shared",
       {[](const Inputs& t) { return add_shared(t.at("x"), t.at("b")); },
        {{"x", make({3, 5})}, {"b", make({5})}}}},
      {"sum_first",
       {[](const Inputs& t) { return sum_first(t.at("x")).square(); }, {{"x", make({3, 4})}}}},
  };
}

TEST(SecondDerivative, OfTheFunctionsAroundAttention) {
  for (const auto& [name, entry] : functions())
    expect_second_derivatives(entry.first, entry.second, name);
}

TEST(SecondDerivative, HasADerivative) {
  const Case c(small(Method::alpha_translution));
  auto all = functions();
  all["attention"] = {[&](const Inputs& inputs) { return c.run(inputs); }, c.inputs()};
  for (const auto& [name, entry] : all) {
    const auto& [function, inputs] = entry;
    expect_second_derivatives(derivative_of(function, inputs, name), inputs,
                              "derivative of " + name);
  }
}

// An op that has no plain form.
at::Tensor twice(const at::Tensor& x) { return x * 2; }
at::Tensor twice_autograd(const at::Tensor& x) {
  const Differentiable call("twice", {x});
  const auto out = call.below([&] { return twice(x); });
  call.finish({out}, {x}, [](const BackwardCall& b) -> Tensors {
    static const Op<at::Tensor(const at::Tensor&)> op("translution_test::twice_backward");
    return {op(b.d[0])};
  });
  return out;
}

TORCH_LIBRARY(translution_test, m) {
  register_op<at::Tensor(const at::Tensor&)>(m, "twice(Tensor x) -> Tensor",
                                             {twice, nullptr, twice, twice_autograd, nullptr});
  register_op<at::Tensor(const at::Tensor&)>(m, "twice_backward(Tensor d) -> Tensor",
                                             {twice, nullptr, twice, nullptr, nullptr});
}

TEST(SecondDerivative, IsRefusedWithoutAPlainForm) {
  static const Op<at::Tensor(const at::Tensor&)> op("translution_test::twice");
  const auto x = at::ones({3}).requires_grad_(true);
  const auto first = torch::autograd::grad({op(x).square().sum()}, {x}, {}, true, true)[0];
  EXPECT_EQ(first.sum().item<float>(), 24);
  try {
    torch::autograd::grad({first.sum()}, {x});
    ADD_FAILURE() << "no error";
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what_without_backtrace(),
                ::testing::StartsWith("twice: second derivatives are not available; use plain "
                                      "PyTorch instead"));
  }
}

}  // namespace
}  // namespace translution::testing
