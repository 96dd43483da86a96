// Sums and elementwise functions whose bits do not depend on the number of threads.

#include "translution/ops/fixed_sum.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/cases.h"
#include "tests/support/expect.h"
#include "tests/support/numeric_gradient.h"
#include "tests/support/thread_count.h"
#include "translution/core/error.h"
#include "translution/ops/gelu.h"

namespace translution::testing {

using namespace detail;

namespace {

// Expects the same bits from make() on 1, 2, 3, 5 and 8 threads.
template <typename Make>
void expect_bits_of_one_thread(const std::string& name, const Make& make) {
  ThreadCount threads_now(1);
  const at::Tensor expected = make();
  for (const int threads : {2, 3, 5, 8}) {
    threads_now.set(threads);
    EXPECT_TRUE(at::equal(make(), expected)) << name << " on " << threads << " threads";
  }
}

const std::vector<int64_t> kShapes[] = {{1, 1},     {1, 5},      {3, 0},      {7, 3},
                                        {33, 17},   {64, 9600},  {2050, 100}, {37000},
                                        {2, 70001}, {300, 4099}, {5, 7, 11},  {16, 26, 84}};

TEST(SumFirst, AddsIntegersExactly) {
  for (const auto& shape : kShapes)
    for (const auto type : {at::kFloat, at::kDouble}) {
      auto random = generator("sum_first");
      const auto x = at::randint(-50, 50, shape, random, at::TensorOptions(type));
      EXPECT_TRUE(at::equal(sum_first(x), x.to(at::kLong).sum(0).to(type))) << x.sizes();
    }
}

TEST(SumFirst, GivesTheSameBitsForAnyNumberOfThreads) {
  if (runs_portable()) GTEST_SKIP() << "LibTorch's sums do not guarantee this";
  for (const auto& shape : kShapes) {
    auto random = generator("bits of sum_first");
    const auto x = normal(shape, random), f = x.to(at::kFloat);
    expect_bits_of_one_thread(join("float ", x.sizes()), [&] { return sum_first(f); });
    expect_bits_of_one_thread(join("double ", x.sizes()), [&] { return sum_first(x); });
  }
}

TEST(SumFirst, GradientsMatchFiniteDifferences) {
  auto random = generator("gradient of sum_first");
  expect_elementwise_gradients(
      [](const Inputs& in) { return sum_first(in.at("x").transpose(0, 1)).square(); },
      {{"x", normal({4, 3, 5}, random)}}, "sum_first");
}

TEST(AddShared, IsASumWithGradients) {
  auto random = generator("add_shared");
  const auto x = normal({4, 3, 5}, random), shared = normal({3, 5}, random);
  EXPECT_TRUE(at::equal(add_shared(x, shared), x + shared));
  expect_elementwise_gradients(
      [](const Inputs& in) { return add_shared(in.at("x"), in.at("shared")).square(); },
      {{"x", x}, {"shared", shared}}, "add_shared");
}

TEST(AddShared, RefusesOtherShapes) {
  const auto refusal = [](const at::Tensor& x, const at::Tensor& shared) {
    try {
      add_shared(x, shared);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string("nothing was refused");
  };
  EXPECT_THAT(
      refusal(at::zeros({2, 3}), at::zeros({4})),
      ::testing::StartsWith("add_shared: expected shared to have the shape of one sample of "
                            "x [2, 3], got [4]"));
  EXPECT_THAT(refusal(at::zeros({2, 3}), {}), ::testing::HasSubstr("got no shared"));
}

TEST(Gelu, MatchesLibTorch) {
  auto random = generator("gelu");
  const auto x = normal({7, 33}, random);
  for (const bool tanh : {false, true}) {
    EXPECT_LE(error(gelu(x, tanh), at::gelu(x, tanh ? "tanh" : "none")), kRounding);
    expect_elementwise_gradients([tanh](const Inputs& in) { return gelu(in.at("x"), tanh); },
                                 {{"x", x}}, tanh ? "tanh" : "exact");
  }
  const auto strided = normal({5, 40}, random).t();
  EXPECT_LE(error(gelu(strided, false), at::gelu(strided)), kRounding);
  EXPECT_EQ(gelu(at::empty({0, 3}), false).numel(), 0);
  EXPECT_EQ(gelu(x.to(at::kBFloat16), false).scalar_type(), at::kBFloat16);
}

TEST(Gelu, GivesTheSameBitsForAnyNumberOfThreads) {
  if (runs_portable()) GTEST_SKIP() << "LibTorch's gelu does not guarantee this";
  auto random = generator("bits of gelu");
  const auto numbers = normal({300007}, random);
  for (const auto type : {at::kFloat, at::kDouble})
    for (const bool tanh : {false, true}) {
      const auto x = numbers.to(type).requires_grad_(true);
      expect_bits_of_one_thread("gelu", [&] { return gelu(x, tanh).detach(); });
      expect_bits_of_one_thread("its gradient", [&] {
        return torch::autograd::grad({gelu(x, tanh)}, {x}, {numbers.to(type)})[0];
      });
    }
}

}  // namespace
}  // namespace translution::testing
