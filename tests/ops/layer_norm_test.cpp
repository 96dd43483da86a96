#include "translution/ops/layer_norm.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "tests/support/cases.h"
#include "tests/support/expect.h"
#include "tests/support/numeric_gradient.h"
#include "tests/support/thread_count.h"
#include "translution/core/error.h"

namespace translution::testing {

using namespace detail;

namespace {

using Results = std::vector<at::Tensor>;  // out, and gradients of x, weight and bias

// Inputs, with the output and gradients computed element by element from the definition.
struct Norm {
  at::Tensor x, weight, bias, d;
  double eps;

  Norm(int64_t rows, int64_t channels, double eps = 1e-5, double level = 0.3) : eps(eps) {
    auto random = generator(join(rows, " rows of ", channels));
    x = normal({rows, channels}, random) * 2 + level;
    weight = normal({channels}, random);
    bias = normal({channels}, random);
    d = normal({rows, channels}, random);
  }

  Results expected() const {
    const int64_t rows = x.size(0), n = x.size(1);
    Results r = {at::empty_like(x), at::empty_like(x), at::zeros({n}, at::kDouble),
                 at::zeros({n}, at::kDouble)};
    const auto at = [n](const at::Tensor& t, int64_t row, int64_t c) -> double& {
      return t.data_ptr<double>()[row * n + c];
    };
    for (int64_t row = 0; row < rows; ++row) {
      double mean = 0, variance = 0, level = 0, slope = 0;
      for (int64_t c = 0; c < n; ++c) mean += at(x, row, c) / n;
      for (int64_t c = 0; c < n; ++c) variance += std::pow(at(x, row, c) - mean, 2) / n;
      const double deviation = std::sqrt(variance + eps);
      const auto y = [&](int64_t c) { return (at(x, row, c) - mean) / deviation; };
      for (int64_t c = 0; c < n; ++c) {
        level += at(d, row, c) * at(weight, 0, c) / n;
        slope += at(d, row, c) * at(weight, 0, c) * y(c) / n;
      }
      for (int64_t c = 0; c < n; ++c) {
        at(r[0], row, c) = y(c) * at(weight, 0, c) + at(bias, 0, c);
        at(r[1], row, c) = (at(d, row, c) * at(weight, 0, c) - level - y(c) * slope) / deviation;
        at(r[2], 0, c) += at(d, row, c) * y(c);
        at(r[3], 0, c) += at(d, row, c);
      }
    }
    return r;
  }

  template <typename Op>
  Results results(at::ScalarType type, const Op& op) const {
    const auto leaf = [type](const at::Tensor& t) {
      return t.to(type).detach().clone().requires_grad_(true);
    };
    const auto a = leaf(x), b = leaf(weight), c = leaf(bias);
    const auto out = op(a, b, c);
    const auto grads = torch::autograd::grad({out}, {a, b, c}, {d.to(type)});
    return {out.detach(), grads[0], grads[1], grads[2]};
  }

  Results ours(at::ScalarType type) const {
    return results(type, [this](const auto& a, const auto& b, const auto& c) {
      return layer_norm(a, b, c, eps);
    });
  }
  Results theirs(at::ScalarType type) const {
    return results(type, [this](const auto& a, const auto& b, const auto& c) {
      return at::layer_norm(a, {x.size(1)}, b, c, eps);
    });
  }
};

// One channel, widths below, at and above every vector and block size; rows for one or many shards.
std::vector<Norm> all_norms() {
  std::vector<Norm> all;
  for (const int64_t channels : {1, 2, 7, 16, 33, 84, 192, 4099})
    for (const int64_t rows : {1, 5, 70}) all.emplace_back(rows, channels);
  all.emplace_back(2050, 33);
  all.emplace_back(5, 192, 1e-5, 100.0);
  all.emplace_back(5, 192, 1e-3);
  return all;
}

TEST(LayerNorm, AgreesWithALoopOverDoubles) {
  for (const Norm& norm : all_norms()) {
    SCOPED_TRACE(join(norm.x.sizes()));
    const auto expected = norm.expected(), got = norm.ours(at::kDouble);
    for (size_t n = 0; n < expected.size(); ++n)
      EXPECT_LE(error(got[n], expected[n]), kRounding) << n;
  }
}

TEST(LayerNorm, HasAtMostTwiceTheRoundingErrorOfLibTorch) {
  for (const Norm& norm : all_norms()) {
    SCOPED_TRACE(join(norm.x.sizes()));
    Norm rounded = norm;
    for (auto* tensor : {&rounded.x, &rounded.weight, &rounded.bias, &rounded.d})
      *tensor = tensor->to(at::kFloat).to(at::kDouble);
    const auto expected = rounded.expected();
    const auto got = rounded.ours(at::kFloat), theirs = rounded.theirs(at::kFloat);
    for (size_t n = 0; n < expected.size(); ++n) {
      EXPECT_EQ(got[n].scalar_type(), at::kFloat);
      EXPECT_LE(error(got[n].to(at::kDouble), expected[n]),
                2 * error(theirs[n].to(at::kDouble), expected[n]) + 1e-6)
          << n;
    }
  }
}

// As in LibTorch: training that diverges must be noticed.
TEST(LayerNorm, GivesNaNForARowWhoseSquaresOverflow) {
  Norm norm(5, 192);
  norm.x[3] *= 1e20;
  const auto got = norm.ours(at::kFloat), theirs = norm.theirs(at::kFloat);
  for (size_t n = 0; n < got.size(); ++n)
    EXPECT_TRUE(at::equal(got[n].isfinite(), theirs[n].isfinite())) << n;
  EXPECT_TRUE(got[0][3].isnan().all().item<bool>());
  EXPECT_TRUE(got[0][2].isfinite().all().item<bool>());
}

TEST(LayerNorm, GradientsMatchFiniteDifferences) {
  for (const int64_t channels : {2, 7, 33}) {
    const Norm norm(3, channels);
    const auto count = expect_elementwise_gradients(
        [](const Inputs& in) { return layer_norm(in.at("x"), in.at("weight"), in.at("bias")); },
        {{"x", norm.x}, {"weight", norm.weight}, {"bias", norm.bias}}, join(channels, " channels"));
    EXPECT_EQ(count, 5 * channels);
  }
}

TEST(LayerNorm, GivesTheSameBitsForAnyNumberOfThreads) {
  if (runs_portable()) GTEST_SKIP() << "LibTorch's norm does not guarantee this";
  ThreadCount threads_now(1);
  for (const Norm& norm : {Norm(3200, 48), Norm(2050, 33), Norm(67, 192)})
    for (const auto type : {at::kFloat, at::kDouble}) {
      threads_now.set(1);
      const auto expected = norm.ours(type);
      for (const int threads : {2, 3, 8}) {
        threads_now.set(threads);
        const auto got = norm.ours(type);
        for (size_t n = 0; n < got.size(); ++n)
          EXPECT_TRUE(at::equal(got[n], expected[n])) << threads << " threads, result " << n;
      }
    }
}

TEST(LayerNorm, AcceptsAnyShapeTypeAndStride) {
  const Norm norm(6, 33);
  const auto expected = norm.expected()[0];
  const auto scattered = norm.x.t().contiguous().t();
  EXPECT_LE(error(layer_norm(scattered, norm.weight, norm.bias), expected), kRounding);
  const auto cube = layer_norm(norm.x.view({2, 3, 33}), norm.weight, norm.bias);
  EXPECT_EQ(cube.sizes(), (std::vector<int64_t>{2, 3, 33}));
  EXPECT_LE(error(cube.view({6, 33}), expected), kRounding);
  const auto half = layer_norm(norm.x.to(at::kBFloat16), norm.weight.to(at::kBFloat16),
                               norm.bias.to(at::kBFloat16));
  EXPECT_EQ(half.scalar_type(), at::kBFloat16);
  EXPECT_LE(error(half.to(at::kDouble), expected), 0.05);
  EXPECT_EQ(layer_norm(norm.x.narrow(0, 0, 0), norm.weight, norm.bias).size(0), 0);
}

TEST(LayerNorm, GivesShapesOnMeta) {
  const auto meta = at::TensorOptions(at::kMeta);
  const auto x = at::empty({2, 5, 7}, meta).requires_grad_(true);
  const auto weight = at::empty({7}, meta).requires_grad_(true);
  const auto out = layer_norm(x, weight, at::empty({7}, meta));
  EXPECT_EQ(out.sizes(), x.sizes());
  const auto grads = torch::autograd::grad({out.sum()}, {x, weight});
  EXPECT_EQ(grads[0].sizes(), x.sizes());
  EXPECT_EQ(grads[1].sizes(), weight.sizes());
}

TEST(LayerNorm, RefusesMismatchedShapesAndTypes) {
  const auto refusal = [](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    try {
      layer_norm(x, weight, bias);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string("nothing was refused");
  };
  using ::testing::StartsWith;
  const auto x = at::zeros({3, 4}), four = at::zeros({4});
  EXPECT_THAT(refusal({}, four, four), StartsWith("layer_norm: x [..., C] is missing"));
  EXPECT_THAT(refusal(x, {}, four), StartsWith("layer_norm: weight [C] or bias [C] is missing"));
  EXPECT_THAT(refusal(at::zeros({}), four, four), StartsWith("layer_norm: expected x [..., C]"));
  EXPECT_THAT(refusal(x, at::zeros({5}), four), StartsWith("layer_norm: weight has size 5"));
  EXPECT_THAT(refusal(x, four, at::zeros({5})), StartsWith("layer_norm: bias has size 5"));
  EXPECT_THAT(refusal(x, four, four.to(at::kDouble)), StartsWith("layer_norm: bias is Double"));
}

}  // namespace
}  // namespace translution::testing
