#include "tests/support/numeric_gradient.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace translution::testing {
namespace {

constexpr double kStep = 2e-3;       // along a direction of length one
constexpr double kRelative = 1e-7;   // of the gradient
constexpr double kRounding = 2e-12;  // of the loss, divided by the step

/// loss = sum(function(inputs) * weight) with its gradients.
struct Loss {
  const Function& function;
  at::Tensor weight;
  Inputs gradients;

  Loss(const Function& function, const Inputs& inputs, at::Generator& random) : function(function) {
    Inputs leaves;
    std::vector<at::Tensor> list;
    for (const auto& [name, tensor] : inputs)
      list.push_back(leaves[name] = tensor.detach().clone().requires_grad_(true));
    const auto out = function(leaves);
    weight = normal(out.sizes(), random);
    const auto grads = torch::autograd::grad({(out * weight).sum()}, list, {}, c10::nullopt,
                                             /*create_graph=*/false, /*allow_unused=*/true);
    size_t n = 0;
    for (const auto& [name, tensor] : inputs) {
      EXPECT_TRUE(grads[n].defined()) << "no gradient of " << name;
      gradients[name] = grads[n].defined() ? grads[n] : at::zeros_like(tensor);
      ++n;
    }
  }

  double at(Inputs inputs, const std::string& name, const at::Tensor& direction,
            double step) const {
    inputs[name] = inputs[name] + step * direction;
    return (function(inputs) * weight).sum().item<double>();
  }

  double derivative(const Inputs& inputs, const std::string& name,
                    const at::Tensor& direction) const {
    const auto value = [&](double step) { return at(inputs, name, direction, step); };
    return (8 * (value(kStep) - value(-kStep)) - (value(2 * kStep) - value(-2 * kStep))) /
           (12 * kStep);
  }
};

}  // namespace

int expect_directional_gradients(const Function& function, const Inputs& inputs,
                                 const std::string& name) {
  SCOPED_TRACE(name);
  auto random = generator("gradient of " + name);
  const Loss loss(function, inputs, random);
  for (const auto& [input, gradient] : loss.gradients) {
    auto direction = normal(gradient.sizes(), random);
    direction /= direction.norm();
    const double expected = loss.derivative(inputs, input, direction);
    const double got = (gradient * direction).sum().item<double>();
    // The derivative along a random direction is typically |gradient| / sqrt(n).
    const double typical =
        gradient.norm().item<double>() / std::sqrt(static_cast<double>(gradient.numel()));
    EXPECT_NEAR(got, expected, kRelative * std::max(std::abs(got), typical) + kRounding / kStep)
        << "along a direction of " << input;
  }
  return static_cast<int>(loss.gradients.size());
}

int64_t expect_elementwise_gradients(const Function& function, const Inputs& inputs,
                                     const std::string& name) {
  SCOPED_TRACE(name);
  auto random = generator("elements of " + name);
  const Loss loss(function, inputs, random);
  int64_t count = 0;
  for (const auto& [input, gradient] : loss.gradients) {
    auto expected = at::zeros_like(gradient, at::MemoryFormat::Contiguous);
    auto flat = expected.view(-1);
    for (int64_t e = 0; e < flat.numel(); ++e, ++count) {
      auto direction = at::zeros_like(expected);
      direction.view(-1)[e] = 1;
      flat[e] = loss.derivative(inputs, input, direction);
    }
    const double largest = expected.abs().max().item<double>();
    EXPECT_LE((gradient - expected).abs().max().item<double>(),
              kRelative * largest + kRounding / kStep)
        << input;
  }
  return count;
}

}  // namespace translution::testing
