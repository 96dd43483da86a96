#include "tests/weights/golden.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace translution::testing {
namespace {

class GoldenCases : public ::testing::TestWithParam<std::string> {};

NamedTensors as_type(const NamedTensors& tensors, at::ScalarType type) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) result[name] = tensor.to(type);
  return result;
}

// How far the sines and cosines of this LibTorch are from the golden ones. Both are computed in
// float, and their last bit depends on the library that computes them.
double angle_error(const Golden& golden) {
  const auto links = read_authors_module(golden.family, golden.kind, golden.options).links();
  const auto theirs = to_theirs(links, to_ours(links, golden.state, golden.name), golden.name);
  double error = 0;
  for (const auto& [name, tensor] : golden.state)
    if (golden.gradients.count(name) == 0)
      error = std::max(error, relative_error(theirs.at(name), tensor));
  return error;
}

// Compares the output and every gradient of our module, with their weights, with the golden case.
void expect_parity(const Golden& golden, at::ScalarType type, double tolerance) {
  const auto module = read_authors_module(golden.family, golden.kind, golden.options);
  const auto links = module.links();
  Ours ours(module);
  ours.load(to_ours(links, as_type(golden.state, type), golden.name));
  const bool floating = golden.input.is_floating_point();
  const auto input = floating ? golden.input.to(type).clone().requires_grad_(true) : golden.input;
  const auto output = ours.forward(input);
  output.backward(golden.grad_output.to(type));
  EXPECT_LE(relative_error(output, golden.output), tolerance) << "output";
  if (floating) {
    EXPECT_LE(relative_error(input.grad(), golden.grad_input), tolerance) << "input";
  }
  const auto gradients = to_theirs(links, ours.gradients(), golden.name);
  for (const auto& [name, expected] : golden.gradients)
    EXPECT_LE(relative_error(gradients.at(name), expected), tolerance) << name;
}

TEST_P(GoldenCases, AgreeInDouble) {
  const auto golden = load_golden(GetParam());
  expect_parity(golden, torch::kDouble, std::max(1e-10, 4 * angle_error(golden)));
}

TEST_P(GoldenCases, AgreeInFloat) { expect_parity(load_golden(GetParam()), torch::kFloat, 1e-5); }

TEST_P(GoldenCases, ConvertToOursAndBackUnchanged) {
  const auto golden = load_golden(GetParam());
  const auto links = read_authors_module(golden.family, golden.kind, golden.options).links();
  const auto ours = to_ours(links, golden.state, golden.name);
  const auto theirs = to_theirs(links, ours, golden.name);
  ASSERT_EQ(theirs.size(), golden.state.size());
  for (const auto& [name, tensor] : golden.state) {
    const bool learned = golden.gradients.count(name) == 1;
    // Sines in float differ between libraries in the last bit.
    EXPECT_LE(relative_error(theirs.at(name), tensor), learned ? 0 : 1e-7) << name;
    EXPECT_EQ(theirs.at(name).sizes(), tensor.sizes()) << name;
  }
  const auto again = to_ours(links, theirs, golden.name);
  ASSERT_EQ(again.size(), ours.size());
  for (const auto& [name, tensor] : ours) EXPECT_TRUE(at::equal(again.at(name), tensor)) << name;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenCases, ::testing::ValuesIn(golden_names()),
                         [](const auto& test) { return test.param; });

TEST(Golden, Has49Cases) { EXPECT_EQ(golden_names().size(), 49u); }

}  // namespace
}  // namespace translution::testing
