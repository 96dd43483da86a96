#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/cases.h"
#include "tests/support/expect.h"

namespace translution::testing {
namespace {

TEST(TranslutionOracle, AgreesForEverySubsetOfRolesOnGridsOfOneToFourAxes) {
  for (Config config : oracle_configs())
    for (const Roles& roles : all_roles()) {
      config.roles = roles;
      expect_oracle(config);
    }
}

TEST(TranslutionOracle, AgreesWithNoRelativeRole) {
  Config config;
  config.roles = Roles::parse("none");
  expect_oracle(config);
}

TEST(TranslutionOracle, AgreesWithAMatrixPerTokenPair) {
  for (const auto& grid : {std::vector<int64_t>{5}, {3, 2}})
    for (const bool cls : {false, true})
      for (const bool causal : {false, true})
        for (const Roles& roles : all_roles()) {
          Config config;
          config.encoding = Encoding::absolute;
          config.grid = grid;
          config.cls = cls;
          config.causal = causal;
          config.roles = roles;
          config.H = 2;
          expect_oracle(config);
        }
}

TEST(TranslutionOracle, AgreesWithOffsetsSharedBeyondARadius) {
  for (const Method method : {Method::translution, Method::alpha_translution, Method::relative_key,
                              Method::relative_bias})
    for (const Sharing sharing : {Sharing::direction, Sharing::logarithmic, Sharing::window})
      for (const auto& [grid, radius] : {std::pair<std::vector<int64_t>, int64_t>{{17}, 2},
                                         {{9}, 0},
                                         {{5, 4}, 1},
                                         {{3, 2, 4}, 1}})
        for (const bool cls : {false, true})
          for (const bool causal : {false, true}) {
            Config config;
            config.method = method;
            config.sharing = sharing;
            config.grid = grid;
            config.radius = radius;
            config.cls = cls;
            config.causal = causal;
            config.B = 1;
            expect_oracle(config);
          }
}

TEST(TranslutionOracle, AgreesOnACustomRelation) {
  for (const Roles& roles : all_roles())
    for (const bool causal : {false, true})
      for (const bool rows : {false, true}) {
        Config config = relation_config(Method::translution);
        config.roles = roles;
        config.causal = causal;
        config.H = 2;
        if (rows) config.rows = {5, 2, 3};
        expect_oracle(config);
      }
}

TEST(TranslutionOracle, AgreesForASingleToken) {
  for (const Method method : {Method::translution, Method::alpha_translution, Method::rotary,
                              Method::relative_value, Method::convolution})
    for (const bool causal : {false, true}) {
      Config config;
      config.method = method;
      config.grid = {1};
      config.causal = causal;
      config.D = 2;
      expect_oracle(config);
    }
}

TEST(TranslutionOracle, AgreesWithSharedQueriesAndKeysRotated) {
  Config config;
  config.roles = Roles::parse("v");
  config.rotary = true;
  config.grid = {3, 3};
  config.cls = true;
  config.H = 2;
  config.D = 4;
  config.rows = {0, 8, 2};
  expect_oracle(config);
}

TEST(TranslutionOracle, AgreesWithBiasesForEverySubsetOfRoles) {
  for (const Method method : {Method::translution, Method::alpha_translution})
    for (Config config : oracle_configs())
      for (const Roles& roles : all_roles()) {
        if (config.grid.size() > 2) continue;
        config.method = method;
        config.roles = roles;
        config.biases = true;
        config.mask = config.cls;
        expect_oracle(config);
      }
}

TEST(TranslutionOracle, AgreesWithBiasesRotationAndDropout) {
  for (const Method method : {Method::translution, Method::alpha_translution}) {
    Config config;
    config.method = method;
    config.roles = Roles::parse("v");
    config.rotary = config.biases = true;
    config.grid = {3, 3};
    config.cls = true;
    config.H = 2;
    config.D = 4;
    config.dropout = 0.3;
    expect_oracle(config);
  }
}

TEST(TranslutionOracle, AgreesUnderDropout) {
  for (const Roles& roles : all_roles()) {
    Config config;
    config.grid = {3, 3};
    config.cls = true;
    config.roles = roles;
    config.H = 2;
    config.dropout = 0.4;
    config.rows = {0, 5, 7, 9};
    expect_oracle(config);
  }
}

TEST(AlphaOracle, AgreesForEverySubsetOfRolesWithAndWithoutSharedWeights) {
  for (Config config : oracle_configs())
    for (const Roles& roles : all_roles())
      for (const bool shared : {false, true}) {
        config.method = Method::alpha_translution;
        config.roles = roles;
        config.shared = shared;
        config.mixing = config.cls ? Mixing::mean : Mixing::sum;
        expect_oracle(config);
      }
}

TEST(AlphaOracle, AgreesForBothMixingsWithEverySubsetOfRoles) {
  for (const Mixing mixing : {Mixing::sum, Mixing::mean})
    for (const bool shared : {false, true})
      for (const Roles& roles : all_roles())
        for (const Encoding encoding : {Encoding::relative, Encoding::absolute}) {
          Config config;
          config.method = Method::alpha_translution;
          config.mixing = mixing;
          config.shared = shared;
          config.roles = roles;
          config.encoding = encoding;
          config.grid = {3, 2};
          config.H = 2;
          config.R = 3;
          expect_oracle(config);
        }
}

TEST(AlphaOracle, AgreesForTwoWidthsOfTheSmallSpaceWithEverySubsetOfRoles) {
  for (const int64_t out : {1, 5})
    for (const bool shared : {false, true})
      for (const Roles& roles : all_roles())
        for (const Mixing mixing : {Mixing::sum, Mixing::mean}) {
          Config config;
          config.method = Method::alpha_translution;
          config.roles = roles;
          config.shared = shared;
          config.mixing = mixing;
          config.grid = {3, 2};
          config.cls = shared;
          config.H = 2;
          config.R = 3;
          config.R_out = out;
          expect_oracle(config);
        }
}

TEST(AlphaOracle, AgreesWithRotationDropoutAndARelation) {
  Config config;
  config.method = Method::alpha_translution;
  config.grid = {3, 2};
  config.H = 2;
  config.D = 4;
  config.rotary = true;
  config.dropout = 0.3;
  expect_oracle(config);
  config = relation_config(Method::alpha_translution);
  for (const bool shared : {false, true}) {
    config.shared = shared;
    expect_oracle(config);
  }
}

}  // namespace
}  // namespace translution::testing
