// Key padding: padding is neither key nor value, whatever it contains, in every method, type and
// implementation.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/cases.h"
#include "tests/support/expect.h"
#include "tests/support/layouts.h"
#include "tests/support/numeric_gradient.h"
#include "tests/support/portable_only.h"
#include "tests/support/terms.h"
#include "tests/support/thread_count.h"

namespace translution::testing {
namespace {

// Every method with padding: on an image with class token, on a causal text, and on query rows.
std::vector<Config> padded_configs() {
  std::vector<Config> configs;
  for (const auto& entry : kMethods)
    for (const int variant : {0, 1, 2}) {
      Config config;
      config.method = entry.value;
      config.mask = true;
      config.grid = variant == 1 ? std::vector<int64_t>{7} : std::vector<int64_t>{3, 2};
      config.cls = variant == 0;
      config.causal = variant == 1;
      if (variant == 2) config.rows = {5, 0, 5};
      config.B = 3, config.H = 2, config.D = 4;
      configs.push_back(config);
    }
  return configs;
}

Inputs fresh_leaves(const Case& c, at::ScalarType type) {
  auto inputs = c.inputs_as(type);
  for (auto& entry : inputs) entry.second = entry.second.detach().clone().requires_grad_(true);
  return inputs;
}

// The output as "out", and the gradient of every input.
Inputs padded_results(const Case& c, at::ScalarType type) {
  const auto inputs = fresh_leaves(c, type);
  auto random = generator("padding " + c.config().str());
  const auto out = c.run(inputs);
  auto all = gradients(c, inputs, normal(out.sizes(), random).to(type));
  all["out"] = out.detach();
  return all;
}

at::Tensor at_padding(const Case& c) { return c.call().mask.logical_not().unsqueeze(-1); }

TEST(Padding, AgreesWithTheOracleForEveryMethod) {
  for (Config config : padded_configs()) {
    expect_oracle(config);
    if (config.method == Method::convolution) continue;  // ignores dropout
    config.dropout = 0.4;
    expect_oracle(config);
  }
}

TEST(Padding, AgreesWithTheOracleForEverySubsetOfRoles) {
  for (const Method method : {Method::translution, Method::alpha_translution})
    for (const Roles& roles : all_roles())
      for (const bool shared : {true, false}) {
        Config config;
        config.method = method;
        config.roles = roles;
        config.shared = shared;
        config.mask = true;
        config.H = 3;
        expect_oracle(config);
      }
}

TEST(Padding, HasGradientsThatAgreeWithFiniteDifferences) {
  for (Config config : padded_configs()) {
    config.B = 2, config.C = 3;
    const Case c(config);
    expect_elementwise_gradients([&](const Inputs& in) { return c.run(in); }, c.inputs(),
                                 config.str());
  }
}

// Float kernels against doubles. 19 samples of narrow channels are stored with the batch last.
TEST(Padding, AgreesInFloatForFewAndManySamples) {
  for (Config config : padded_configs())
    for (const int64_t batch : {1, 19})
      for (const int64_t channels : {5, 67}) {
        config.B = batch, config.C = channels;
        config.D = channels == 5 ? 4 : 36;
        SCOPED_TRACE(config.str());
        const Case c(config);
        const auto expected = padded_results(c, at::kDouble);
        for (const auto& [name, tensor] : padded_results(c, at::kFloat))
          EXPECT_LE(error(tensor, expected.at(name)), 2e-5) << name;
      }
}

TEST(Padding, AgreesOnThePortablePath) {
  for (Config config : padded_configs())
    for (const int64_t batch : {2, 19}) {
      config.B = batch;
      SCOPED_TRACE(config.str());
      const Case c(config);
      const auto got = padded_results(c, at::kDouble);
      const PortableOnly portable;
      for (const auto& [name, tensor] : padded_results(c, at::kDouble))
        EXPECT_LE(error(got.at(name), tensor), kRounding) << name;
    }
}

TEST(Padding, AgreesWithBf16ProductsWithinTheirRounding) {
  for (Config config : padded_configs())
    for (const int64_t batch : {2, 19}) {
      config.B = batch;
      config.precision = Precision::bf16;
      SCOPED_TRACE(config.str());
      const Case c(config);
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        const auto got = padded_results(c, type);
        EXPECT_LE(error(got.at("out"), c.expected()), 0.05);
        const PortableOnly portable;
        for (const auto& [name, tensor] : padded_results(c, type))
          EXPECT_LE(error(got.at(name), tensor), 0.05) << name;
      }
    }
}

// Padding is not a query here, so that only keys and values could carry its contents.
TEST(Padding, MayContainNaNAndInfinity) {
  for (const auto type : {at::kFloat, at::kDouble})
    for (Config config : padded_configs())
      for (const int64_t batch : {2, 19}) {
        config.B = batch;
        config.rows = {4, 1};
        SCOPED_TRACE(config.str());
        Case c(config);
        c.mask().select(1, 4).fill_(true);
        c.mask().select(1, 1).fill_(true);
        c.mask().select(1, 2).fill_(false);
        c.mask().select(1, 5).fill_(false);
        auto inputs = fresh_leaves(c, type), wild = fresh_leaves(c, type);
        {
          const at::NoGradGuard no_grad;
          wild["x"].masked_fill_(at_padding(c), std::nan(""));
          wild["x"].select(1, 5).fill_(std::numeric_limits<double>::infinity());
        }
        const auto out = c.run(inputs);
        EXPECT_TRUE(at::equal(c.run(wild), out));
        const auto expected = gradients(c, inputs, at::ones_like(out));
        for (const auto& [name, tensor] : gradients(c, wild, at::ones_like(out)))
          EXPECT_TRUE(at::equal(tensor, expected.at(name))) << name;
        EXPECT_EQ(expected.at("x").masked_select(at_padding(c)).abs().max().item<double>(), 0);
      }
}

TEST(Padding, OfAllKeysGivesZerosAndNoGradients) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (Config config : padded_configs())
      for (const int64_t batch : {2, 19}) {
        config.B = batch;
        SCOPED_TRACE(config.str());
        Case c(config);
        c.mask()[1].fill_(false);
        const auto inputs = fresh_leaves(c, type);
        const auto attended = c.attend(inputs, /*map=*/config.method != Method::convolution);
        EXPECT_TRUE(at::equal(attended.out[1], at::zeros_like(attended.out[1])));
        if (attended.map.defined()) {
          EXPECT_TRUE(at::equal(attended.map[1], at::zeros_like(attended.map[1])));
        }
        const auto all = gradients(c, inputs, at::ones_like(attended.out));
        EXPECT_TRUE(at::equal(all.at("x")[1], at::zeros_like(all.at("x")[1])));
        for (const auto& [name, tensor] : all)
          EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
      }
}

TEST(Padding, ThatIsEmptyGivesTheSameBits) {
  if (runs_portable()) GTEST_SKIP() << "LibTorch's products of q and of k, v may round differently";
  for (Config config : padded_configs())
    for (const int64_t batch : {2, 19}) {
      config.B = batch;
      SCOPED_TRACE(config.str());
      Case c(config);
      c.mask().fill_(true);
      const auto masked = padded_results(c, at::kFloat);
      c.mask() = at::Tensor();
      for (const auto& [name, tensor] : padded_results(c, at::kFloat))
        EXPECT_LE(error(masked.at(name), tensor), name == "out" ? 0 : 1e-6) << name;
    }
}

TEST(Padding, IsAsIfTheTokensWereNotThere) {
  for (const auto& entry : kMethods) {
    if (entry.value == Method::rotary) continue;  // the call has an angle for each of nine tokens
    Config config;
    config.method = entry.value;
    config.grid = {9};
    SCOPED_TRACE(config.str());
    Case c(config);
    auto inputs = c.inputs();
    inputs["x"] = inputs["x"].narrow(1, 0, 6);
    const auto expected = c.run(inputs);
    c.mask() = (at::arange(9) < 6).expand({2, 9});
    EXPECT_LE(error(c.run().narrow(1, 0, 6), expected), kRounding);
  }
}

TEST(Padding, MaskMayBeStrided) {
  for (const Config& config : padded_configs()) {
    SCOPED_TRACE(config.str());
    Case c(config);
    const auto expected = padded_results(c, at::kFloat);
    const auto mask = c.mask();
    c.mask() = mask.t().contiguous().t();
    for (const auto& [name, tensor] : padded_results(c, at::kFloat))
      EXPECT_TRUE(at::equal(tensor, expected.at(name))) << name;
    c.mask() = at::stack({mask, mask.logical_not()}, -1).select(-1, 0);
    for (const auto& [name, tensor] : padded_results(c, at::kFloat))
      EXPECT_TRUE(at::equal(tensor, expected.at(name))) << name;
  }
}

TEST(Padding, GivesTheSameBitsOnAnyNumberOfThreads) {
  if (runs_portable()) GTEST_SKIP() << "LibTorch's own matrix products do not guarantee this";
  ThreadCount threads_now(1);
  for (Config config : padded_configs()) {
    if (config.method == Method::convolution) continue;  // has no kernels
    config.grid = config.causal ? std::vector<int64_t>{31} : std::vector<int64_t>{5, 7};
    config.B = 19, config.C = 26, config.D = 20, config.R = 8;
    SCOPED_TRACE(config.str());
    const Case c(config);
    threads_now.set(1);
    const auto one = padded_results(c, at::kFloat);
    for (const int threads : {2, 3}) {
      threads_now.set(threads);
      for (const auto& [name, tensor] : padded_results(c, at::kFloat))
        EXPECT_TRUE(at::equal(tensor, one.at(name))) << threads << " threads, " << name;
    }
  }
}

// The core op scales scores by any number; padding is closed for negative scales as well.
TEST(Padding, IsClosedForAnyScale) {
  for (const double scale : {-2.0, 0.0, 0.7})
    for (const bool relative : {false, true}) {
      TermsConfig config;
      config.mask = true;
      if (relative) config.q = config.k = Side::matrices;
      TermsCase c(config);
      c.call().scale = scale;
      const auto map = c.attend(c.inputs()).attention;
      const auto padding = c.call().mask.logical_not().unsqueeze(1).unsqueeze(1).expand_as(map);
      EXPECT_EQ(map.masked_select(padding).abs().max().item<double>(), 0);
      EXPECT_LE(error(map.sum(-1), at::ones({2, 2, 7}, at::kDouble)), kRounding);
    }
}

}  // namespace
}  // namespace translution::testing
