#include "translution/ops/cross_entropy.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "tests/support/cases.h"
#include "tests/support/expect.h"
#include "tests/support/thread_count.h"
#include "translution/core/error.h"
#include "translution/ops/runtime.h"

namespace translution::testing {

using namespace detail;

namespace {

// Logits and classes, with the loss and gradient computed element by element from the definition.
struct Rows {
  at::Tensor logits, target;
  double smoothing;

  Rows(int64_t rows, int64_t classes, double smoothing, double spread = 3) : smoothing(smoothing) {
    auto random = generator(join(rows, " rows of ", classes));
    logits = normal({rows, classes}, random) * spread;
    target = at::randint(classes, {rows}, random, at::TensorOptions(at::kLong));
  }

  // The target probability of class c in row r.
  double target_weight(int64_t r, int64_t c) const {
    const bool hit = target.data_ptr<int64_t>()[r] == c;
    return (hit ? 1 - smoothing : 0) + smoothing / static_cast<double>(logits.size(1));
  }

  // The loss and its gradient with respect to the logits.
  std::pair<double, at::Tensor> expected() const {
    const int64_t rows = logits.size(0), classes = logits.size(1);
    auto gradient = at::empty_like(logits);
    double loss = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const double* const x = logits.data_ptr<double>() + r * classes;
      const double top = *std::max_element(x, x + classes);
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - top);
      for (int64_t c = 0; c < classes; ++c) {
        const double log_p = x[c] - top - std::log(sum);
        loss -= target_weight(r, c) * log_p / static_cast<double>(rows);
        gradient.data_ptr<double>()[r * classes + c] =
            (std::exp(log_p) - target_weight(r, c)) / static_cast<double>(rows);
      }
    }
    return {loss, gradient};
  }

  std::pair<at::Tensor, at::Tensor> ours(at::ScalarType type) const {
    const auto x = logits.to(type).detach().clone().requires_grad_(true);
    const auto loss = cross_entropy(x, target, smoothing);
    return {loss.detach(), torch::autograd::grad({loss}, {x})[0]};
  }
};

// One class, widths below, at and above every vector and block size, and a vocabulary.
std::vector<Rows> all_rows() {
  std::vector<Rows> all;
  for (const double smoothing : {0.0, 0.1})
    for (const int64_t classes : {1, 2, 7, 16, 33, 1000, 4096, 4099, 50257})
      for (const int64_t rows : {1, 5}) all.emplace_back(rows, classes, smoothing);
  return all;
}

TEST(CrossEntropy, AgreesWithALoopOverDoubles) {
  for (const Rows& rows : all_rows()) {
    SCOPED_TRACE(join(rows.logits.sizes(), " smoothing ", rows.smoothing));
    const auto [loss, gradient] = rows.expected();
    const auto exact = rows.ours(at::kDouble), rounded = rows.ours(at::kFloat);
    EXPECT_NEAR(exact.first.item<double>(), loss, 1e-12);
    EXPECT_LE((exact.second - gradient).abs().max().item<double>(), 1e-13);
    EXPECT_EQ(rounded.first.scalar_type(), at::kFloat);
    EXPECT_NEAR(rounded.first.item<double>(), loss, 2e-6 * (1 + loss));
    EXPECT_LE((rounded.second.to(at::kDouble) - gradient).abs().max().item<double>(), 1e-5);
  }
}

TEST(CrossEntropy, MatchesLibTorch) {
  for (const Rows& rows : all_rows()) {
    const auto x = rows.logits.detach().clone().requires_grad_(true);
    const auto theirs =
        at::cross_entropy_loss(x, rows.target, {}, at::Reduction::Mean, -100, rows.smoothing);
    const auto gradient = torch::autograd::grad({theirs}, {x})[0];
    const auto ours = rows.ours(at::kDouble);
    EXPECT_NEAR(ours.first.item<double>(), theirs.item<double>(), 1e-12) << rows.logits.sizes();
    EXPECT_LE((ours.second - gradient).abs().max().item<double>(), 1e-13) << rows.logits.sizes();
  }
}

TEST(CrossEntropy, ScalesItsGradient) {
  const Rows rows(5, 33, 0.1);
  const auto x = rows.logits.detach().clone().requires_grad_(true);
  const auto gradient = torch::autograd::grad({cross_entropy(x, rows.target, 0.1) * 3}, {x})[0];
  EXPECT_LE(error(gradient, rows.expected().second * 3), kRounding);
}

TEST(CrossEntropy, AcceptsLargeLogits) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    const auto logits = at::tensor({-1e4, 1e4, 0.0}, type).reshape({1, 3});
    const auto loss_of = [&](int64_t target) {
      return cross_entropy(logits, at::full({1}, target, at::kLong)).item<double>();
    };
    EXPECT_NEAR(loss_of(0), 2e4, 2e-3);
    EXPECT_EQ(loss_of(1), 0);
    EXPECT_NEAR(loss_of(2), 1e4, 1e-3);
  }
}

TEST(CrossEntropy, IgnoresClassesWithALogitOfMinusInfinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto type : {at::kFloat, at::kDouble}) {
    const auto x = at::tensor({-infinity, 0.0, 0.0}, type).reshape({1, 3}).requires_grad_(true);
    const auto loss = cross_entropy(x, at::full({1}, 2, at::kLong));
    EXPECT_NEAR(loss.item<double>(), std::log(2.0), 1e-6);
    const auto gradient = torch::autograd::grad({loss}, {x})[0];
    EXPECT_LE(error(gradient, at::tensor({0.0, 0.5, -0.5}).reshape({1, 3})), 1e-6);
  }
}

TEST(CrossEntropy, IsNotFiniteForNaNOrInfiniteLogits) {
  for (const double none : {std::nan(""), std::numeric_limits<double>::infinity()})
    for (const auto type : {at::kFloat, at::kDouble}) {
      auto logits = at::zeros({3, 40}, type);
      logits[1][37] = none;
      EXPECT_FALSE(std::isfinite(cross_entropy(logits, at::zeros({3}, at::kLong)).item<double>()));
    }
}

TEST(CrossEntropy, GivesTheSameBitsForAnyNumberOfThreads) {
  const Rows rows(37, 4099, 0.1);
  ThreadCount threads_now(1);
  const auto expected = rows.ours(at::kFloat);
  for (const int threads : {2, 3, 5}) {
    threads_now.set(threads);
    const auto got = rows.ours(at::kFloat);
    EXPECT_TRUE(at::equal(got.first, expected.first)) << threads;
    EXPECT_TRUE(at::equal(got.second, expected.second)) << threads;
  }
}

TEST(CrossEntropy, AcceptsStridedLogits) {
  const Rows rows(6, 33, 0);
  const auto scattered = rows.logits.t().contiguous().t();
  EXPECT_NEAR(cross_entropy(scattered, rows.target).item<double>(), rows.expected().first, 1e-12);
}

TEST(CrossEntropy, AcceptsClassProbabilities) {
  const Rows rows(6, 33, 0.1);
  auto shares = at::empty({6, 33}, at::kDouble);
  for (int64_t r = 0; r < 6; ++r)
    for (int64_t c = 0; c < 33; ++c) shares[r][c] = rows.target_weight(r, c);
  EXPECT_NEAR(cross_entropy(rows.logits, shares).item<double>(), rows.expected().first, 1e-12);
}

std::string refusal(const at::Tensor& logits, const at::Tensor& target) {
  try {
    cross_entropy(logits, target);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(CrossEntropy, RefusesInvalidTargets) {
  using ::testing::HasSubstr;
  if (!runtime().fused()) GTEST_SKIP() << "LibTorch has messages of its own";
  const auto logits = at::zeros({3, 4});
  EXPECT_THAT(refusal(logits, at::tensor({0, 4, 1}, at::kLong)),
              HasSubstr("cross_entropy: expected classes 0 to 3, got 4 in row 1"));
  EXPECT_THAT(refusal(logits, at::tensor({0, 1, -1}, at::kLong)), HasSubstr("got -1 in row 2"));
  EXPECT_THAT(refusal(logits, at::tensor({0, 1}, at::kLong)),
              HasSubstr("expected a class for each of 3 rows, got a target of shape [2]"));
}

}  // namespace
}  // namespace translution::testing
