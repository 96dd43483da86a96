#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/cases.h"
#include "tests/support/expect.h"
#include "tests/support/terms.h"
#include "translution/ops/rotary.h"

namespace translution::testing {
namespace {

TEST(AttentionOracle, AgreesForEveryCombinationOfTerms) {
  const auto configs = all_terms();
  std::printf("%zu combinations of terms\n", configs.size());
  for (const TermsConfig& config : configs) {
    SCOPED_TRACE(config.str());
    const TermsCase c(config);
    EXPECT_LE(error(c.run(c.inputs()), c.expected()), kRounding);
  }
}

TEST(SelfAttentionOracle, AgreesForEveryPositionTermOnGridsOfOneToFourAxes) {
  for (const Method method : self_attention_methods())
    for (Config config : oracle_configs()) {
      config.method = method;
      if (method == Method::rotary) config.D = 2 * static_cast<int64_t>(config.grid.size());
      expect_oracle(config);
    }
}

TEST(SelfAttentionOracle, AgreesWithAbsoluteTermsAndRelations) {
  for (const Method method : {Method::relative_key, Method::relative_value, Method::relative_bias,
                              Method::gated_position})
    for (const bool causal : {false, true}) {
      Config config;
      config.method = method;
      config.encoding = Encoding::absolute;
      config.grid = {3, 2};
      config.cls = true;
      config.causal = causal;
      config.H = 2;
      expect_oracle(config);
      config = relation_config(method);
      config.causal = causal;
      config.H = 3;
      expect_oracle(config);
      config.rows = {2, 4, 4};
      expect_oracle(config);
    }
}

TEST(SelfAttentionOracle, AgreesUnderDropoutAndRotation) {
  for (const Method method : self_attention_methods()) {
    Config config;
    config.method = method;
    config.grid = {3, 4};
    config.cls = true;
    config.H = 2;
    config.D = 8;
    config.rotary = true;
    config.dropout = 0.5;
    config.rows = {12, 0, 7};
    expect_oracle(config);
  }
}

TEST(ConvolutionOracle, AgreesOnGridsOfOneToFourAxes) {
  for (const int64_t radius : {0, 1, 2})
    for (Config config : oracle_configs()) {
      config.method = Method::convolution;
      config.radius = radius;
      config.H = 1;
      expect_oracle(config);
    }
}

TEST(ConvolutionOracle, AgreesOnACustomRelation) {
  Config config = relation_config(Method::convolution);
  for (const bool causal : {false, true}) {
    config.causal = causal;
    expect_oracle(config);
    config.rows = {5, 2, 0};
    expect_oracle(config);
  }
}

TEST(RotaryOracle, AgreesForOneToFourAxesWithAndWithoutClassToken) {
  const std::vector<int64_t> grids[] = {{11}, {3, 5}, {2, 3, 2}, {2, 2, 1, 3}};
  for (const auto& grid : grids)
    for (const bool cls : {false, true})
      for (const int64_t pairs : {1, 3}) {
        Config shape;
        shape.grid = grid;
        shape.cls = cls;
        SCOPED_TRACE(shape.str());
        const int64_t D = 2 * pairs * static_cast<int64_t>(grid.size()), H = 3;
        auto random = generator(shape.str());
        const auto x = normal({2, shape.tokens(), H * D}, random);
        EXPECT_LE(error(rotary(x, rotary_angles(grid, cls, D), H), oracle::rotary(x, grid, cls, H)),
                  kRounding);
      }
}

TEST(WideOracle, AgreesForWidthsThatFitNoVectorInDoubleAndFloat) {
  for (const Config& config : wide_configs()) {
    SCOPED_TRACE(config.str());
    const Case c(config);
    const auto expected = c.expected();
    EXPECT_LE(error(c.run(), expected), kRounding);
    EXPECT_LE(error(c.run(c.inputs_as(at::kFloat)), expected), 1e-5);
  }
}

TEST(AttentionMap, HoldsTheWeightsOfTheValues) {
  for (const Method method : self_attention_methods()) {
    if (method == Method::relative_value) continue;
    Config config;
    config.method = method;
    config.grid = {3, 4};
    config.cls = true;
    config.causal = true;
    config.H = 2;
    config.D = 4;
    config.rows = {0, 6, 12};
    SCOPED_TRACE(config.str());
    const Case c(config);
    const auto attended = c.attend(c.inputs(), /*map=*/true);
    const auto v = at::matmul(c.inputs().at("x"), c.inputs().at("v"))
                       .view({config.B, config.tokens(), config.H, config.D});
    EXPECT_LE(error(at::einsum("bhij,bjhd->bihd", {attended.map, v}).reshape_as(attended.out),
                    attended.out),
              kRounding);
    EXPECT_LE(error(attended.map.sum(-1), at::ones({config.B, config.H, 3}, at::kDouble)),
              kRounding);
  }
}

}  // namespace
}  // namespace translution::testing
