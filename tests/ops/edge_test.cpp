#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/cases.h"
#include "tests/support/layouts.h"
#include "tests/support/terms.h"

namespace translution::testing {
namespace {

// One config per method: class token, odd number of heads, and query rows.
std::vector<Config> one_per_method() {
  std::vector<Config> configs;
  for (const auto& entry : kMethods) {
    Config config;
    config.method = entry.value;
    config.grid = {3, 4};
    config.cls = true;
    config.H = 3;
    config.D = 4;
    config.rows = {0, 5, 11, 12};
    configs.push_back(config);
  }
  return configs;
}

template <typename Layout>
void expect_layout_does_not_matter(Layout layout) {
  for (const Config& config : one_per_method()) {
    SCOPED_TRACE(config.str());
    const Case c(config);
    auto random = generator("layout" + config.str());
    const auto weight = normal(c.run().sizes(), random);
    const auto plain = c.inputs_with_grad();
    auto strided = c.inputs_with_grad();
    for (auto& [name, tensor] : strided) {
      tensor = layout(tensor.detach());
      EXPECT_TRUE(tensor.dim() < 2 || !tensor.is_contiguous() || tensor.storage_offset() == 1)
          << name;
      tensor.requires_grad_(true);
    }
    EXPECT_LE(error(c.run(strided), c.run()), 1e-14);
    const auto expected = gradients(c, plain, weight);
    const auto got = gradients(c, strided, layout(weight));
    for (const auto& [name, gradient] : expected)
      EXPECT_LE(error(got.at(name), gradient), 1e-13) << name;
  }
}

TEST(Layout, TransposedInputsGiveTheSame) { expect_layout_does_not_matter(columns_first); }

TEST(Layout, InputsWithGapsGiveTheSame) { expect_layout_does_not_matter(every_second); }

TEST(Layout, MisalignedInputsGiveTheSame) { expect_layout_does_not_matter(misaligned); }

TEST(Layout, AnglesAndMaskMayBeStrided) {
  Config config;
  config.method = Method::relative_key;
  config.grid = {3, 4};
  config.rotary = true;
  config.D = 4;
  config.rows = {7, 1, 11};
  const Case c(config);
  auto call = c.call();
  call.angles = columns_first(call.angles);
  const auto& in = c.inputs();
  const auto out = self_attention(in.at("x"), {in.at("q"), in.at("k"), in.at("v")},
                                  {in.at("key_vectors"), {}, {}, {}, {}, {}}, call)
                       .out;
  EXPECT_EQ(error(out, c.run()), 0);

  TermsConfig terms;
  terms.keep = true;
  TermsCase masked(terms);
  const auto expected = masked.run(masked.inputs());
  masked.call().keep = columns_first(masked.call().keep);
  EXPECT_EQ(error(masked.run(masked.inputs()), expected), 0);
}

TEST(Layout, OneSampleExpandedOverTheBatchGivesEqualRows) {
  for (Config config : one_per_method()) {
    SCOPED_TRACE(config.str());
    config.B = 1;
    const Case c(config);
    auto inputs = c.inputs();
    inputs["x"] = inputs["x"].expand({3, -1, -1});
    const auto out = c.run(inputs);
    EXPECT_LE(error(out, c.run().expand_as(out)), 1e-14);
  }
}

TEST(Sizes, AnEmptyBatchGivesAnEmptyOutputAndGradientsOfZero) {
  for (const auto type : {at::kFloat, at::kDouble})
    for (Config config : one_per_method()) {
      SCOPED_TRACE(config.str());
      config.B = 0;
      const Case c(config);
      auto inputs = c.inputs_as(type);
      for (auto& entry : inputs) entry.second.requires_grad_(true);
      const auto out = c.run(inputs);
      EXPECT_EQ(out.sizes(), (at::IntArrayRef{0, 4, 12}));
      for (const auto& [name, gradient] : gradients(c, inputs, at::ones_like(out)))
        EXPECT_TRUE(at::equal(gradient, at::zeros_like(inputs.at(name)))) << name;
    }
}

TEST(Sizes, OneTokenGivesItsOwnValueAndGradients) {
  for (const auto type : {at::kFloat, at::kDouble})
    for (Config config : one_per_method()) {
      config.grid = {1, 1};
      config.cls = false;
      config.rows.clear();
      SCOPED_TRACE(config.str());
      const Case c(config);
      EXPECT_LE(error(c.run(c.inputs_as(type)), c.expected()), type == at::kFloat ? 4e-6 : 1e-13);
      auto inputs = c.inputs_as(type);
      for (auto& entry : inputs) entry.second.requires_grad_(true);
      // The only attention weight is 1, so inputs of the scores have no effect.
      for (const auto& [name, gradient] : gradients(c, inputs, at::ones_like(c.run(inputs)))) {
        const bool score = name.find_first_of("qk") != std::string::npos && name != "kernel";
        const bool scores_only = score || name == "bias" || name == "position" || name == "gate";
        EXPECT_EQ(gradient.abs().max().item<double>() == 0, scores_only) << name;
      }
    }
}

// Checks the error of a type: forward against the oracle, gradients against those in double.
void expect_close(at::ScalarType type, double tolerance) {
  for (const Config& config : one_per_method()) {
    SCOPED_TRACE(config.str());
    const Case c(config);
    auto inputs = c.inputs_as(type);
    const auto out = c.run(inputs);
    EXPECT_EQ(out.scalar_type(), type);
    EXPECT_LE(error(out, c.expected()), tolerance);
    auto random = generator("types" + config.str());
    const auto weight = normal(out.sizes(), random);
    for (auto& entry : inputs) entry.second.requires_grad_(true);
    const auto expected = gradients(c, c.inputs_with_grad(), weight);
    for (const auto& [name, gradient] : gradients(c, inputs, weight.to(type))) {
      EXPECT_EQ(gradient.scalar_type(), type) << name;
      EXPECT_LE(error(gradient, expected.at(name)), tolerance) << name;
    }
  }
}

TEST(Types, FloatAgreesWithDoubleWithinItsRounding) { expect_close(at::kFloat, 4e-6); }

TEST(Types, Bfloat16AgreesWithDoubleWithinItsRounding) { expect_close(at::kBFloat16, 0.1); }

TEST(Rows, ARowThatSeesNoTokenIsZeroAndHasZeroGradients) {
  for (const auto& entry : kMethods) {
    Config config = relation_config(entry.value);
    if (entry.value == Method::rotary) config.D = 4, config.grid = {6};
    SCOPED_TRACE(config.str());
    const Case c(config);
    const auto out = c.run();
    EXPECT_TRUE(at::equal(out.select(1, 2), at::zeros_like(out.select(1, 2))));
    EXPECT_GT(out.select(1, 3).abs().min().item<double>(), 0);
    auto weight = at::zeros_like(out);
    weight.select(1, 2).fill_(1);
    for (const auto& [name, gradient] : gradients(c, c.inputs_with_grad(), weight))
      EXPECT_TRUE(at::equal(gradient, at::zeros_like(gradient))) << name;
  }
}

TEST(Rows, ARelationWithoutPairsGivesZerosAndZeroGradients) {
  for (const auto& entry : kMethods) {
    Config config = relation_config(entry.value);
    config.relation.assign(config.relation.size(), -1);
    if (entry.value == Method::rotary) config.D = 4, config.grid = {6};
    SCOPED_TRACE(config.str());
    const Case c(config);
    const auto out = c.run();
    EXPECT_EQ(out.sizes(), c.expected().sizes());
    EXPECT_TRUE(at::equal(out, at::zeros_like(out)));
    for (const auto& [name, gradient] : gradients(c, c.inputs_with_grad(), at::ones_like(out)))
      EXPECT_TRUE(at::equal(gradient, at::zeros_like(gradient))) << name;
  }
}

TEST(Rows, AskedForEqualThoseOfTheWholeOutput) {
  for (Config config : one_per_method())
    for (const int64_t batch : {2, 17}) {
      config.B = batch;
      SCOPED_TRACE(config.str());
      const Case some(config);
      const auto rows = at::tensor(config.rows, at::kLong);
      auto options = config;
      options.rows.clear();
      const Case all(options);
      EXPECT_LE(error(some.run(), all.run(some.inputs()).index_select(1, rows)), 1e-14);
    }
}

TEST(Softmax, HugeScoresStayFinite) {
  for (const Method method : {Method::translution, Method::alpha_translution, Method::rotary}) {
    Config config;
    config.method = method;
    config.D = 4;
    config.causal = true;
    SCOPED_TRACE(config.str());
    const Case c(config);
    auto inputs = c.inputs_with_grad();
    inputs["x"] = (inputs["x"].detach() * 1e3).requires_grad_(true);
    const auto out = c.run(inputs);
    EXPECT_TRUE(out.isfinite().all().item<bool>());
    for (const auto& [name, gradient] : gradients(c, inputs, at::ones_like(out)))
      EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << name;
  }
}

}  // namespace
}  // namespace translution::testing
