#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "tests/support/cases.h"
#include "tests/support/numeric_gradient.h"
#include "tests/support/terms.h"

namespace translution::testing {
namespace {

constexpr size_t kExpectedConfigs = 200;

const std::vector<int64_t> kGrids[] = {{5}, {3, 2}, {2, 1, 3}, {2, 1, 2, 2}};

/// Collects configs and varies their sizes.
class Collection {
 public:
  void add(Config config) {
    const auto n = static_cast<int64_t>(configs_.size());
    config.B = 1 + n % 2;
    config.C = 3 + n % 5;
    config.H = 1 + (n / 2) % 2;
    if (config.method == Method::rotary || config.rotary)
      config.D = 2 * static_cast<int64_t>(config.grid.size());
    else
      config.D = 2 + n % 3;
    if (n % 3 == 2) config.rows = {3, 0, 1};
    configs_.push_back(config);
  }

  // Adds the config on every grid, causal or not, with or without class token.
  void add_on_grids(Config config) {
    for (const auto& grid : kGrids)
      for (const bool causal : {false, true})
        for (const bool cls : {false, true}) {
          config.grid = grid;
          config.causal = causal;
          config.mask_only = causal && configs_.size() % 7 == 0;
          config.cls = cls;
          add(config);
        }
  }

  const std::vector<Config>& configs() const { return configs_; }

 private:
  std::vector<Config> configs_;
};

void add_translution(Collection& all) {
  Config config;
  for (const Roles& roles : all_roles()) {
    config.roles = roles;
    all.add_on_grids(config);
  }
}

void add_alpha(Collection& all) {
  Config config;
  config.method = Method::alpha_translution;
  for (const Roles& roles : all_roles())
    for (const int variant : {0, 1, 2, 3}) {
      config.roles = roles;
      config.shared = variant == 1 || variant == 2;
      config.mixing = variant == 2 ? Mixing::mean : Mixing::sum;
      config.R_out = variant == 3 ? 3 : 0;
      all.add_on_grids(config);
    }
}

void add_self_attention(Collection& all) {
  Config config;
  for (const Method method : self_attention_methods()) {
    config.method = method;
    all.add_on_grids(config);
  }
  config.method = Method::convolution;
  all.add_on_grids(config);
}

void add_other_tables(Collection& all) {
  for (const Method method : {Method::translution, Method::alpha_translution, Method::relative_key,
                              Method::gated_position}) {
    Config config;
    config.method = method;
    config.encoding = Encoding::absolute;
    for (const bool causal : {false, true})
      for (const bool cls : {false, true}) {
        config.grid = {2, 2};
        config.causal = causal;
        config.cls = cls;
        all.add(config);
      }
    config = Config();
    config.method = method;
    for (const Sharing sharing : {Sharing::direction, Sharing::logarithmic, Sharing::window})
      for (const bool cls : {false, true}) {
        config.sharing = sharing;
        config.grid = {4, 3};
        config.cls = cls;
        if (cls) config.grid = {8};
        all.add(config);
      }
    for (const bool causal : {false, true}) {
      config = relation_config(method);
      config.causal = causal;
      all.add(config);
    }
    config = Config();
    config.method = method;
    config.grid = {3, 2};
    config.dropout = 0.4;
    all.add(config);
    config.dropout = 0;
    config.grid = {1};
    config.B = 2;
    config.rows = {};
    if (all.configs().size() % 3 != 2) all.add(config);  // one token has no row 3
  }
}

std::vector<Config> all_configs() {
  Collection all;
  add_translution(all);
  add_alpha(all);
  add_self_attention(all);
  add_other_tables(all);
  return all.configs();
}

void expect_gradients(const Config& config) {
  const Case c(config);
  expect_directional_gradients([&](const Inputs& in) { return c.run(in); }, c.inputs(),
                               config.str());
}

TEST(Gradient, OfEveryInputAgreesWithFiniteDifferencesForAllConfigs) {
  std::set<std::string> distinct;
  for (const Config& config : all_configs()) {
    EXPECT_LE(config.tokens(), 12);
    EXPECT_LE(config.C, 7);
    if (distinct.insert(config.str()).second) expect_gradients(config);
  }
  std::printf("%zu distinct configs of the methods\n", distinct.size());
  EXPECT_GE(distinct.size(), kExpectedConfigs);
}

TEST(Gradient, OfEveryTermOfTheCoreOpAgreesWithFiniteDifferences) {
  size_t count = 0, dropped = 0, masked = 0;
  for (const TermsConfig& config : all_terms()) {
    const TermsCase c(config);
    expect_directional_gradients([&](const Inputs& in) { return c.run(in); }, c.inputs(),
                                 config.str());
    ++count;
    dropped += config.keep;
    masked += config.mask;
  }
  std::printf("%zu combinations of terms, %zu with a dropout mask, %zu with key padding\n", count,
              dropped, masked);
  EXPECT_GE(count, kExpectedConfigs);
  EXPECT_GE(dropped, kExpectedConfigs);
  EXPECT_GE(masked, kExpectedConfigs);
}

TEST(Gradient, OfWideLayersAgreesWithFiniteDifferences) {
  for (const Config& config : wide_configs()) expect_gradients(config);
}

TEST(Gradient, OfWideLayersInFloatAgreesWithDouble) {
  for (const Config& config : wide_configs()) {
    SCOPED_TRACE(config.str());
    const Case c(config);
    auto random = generator("float " + config.str());
    const auto weight = normal(c.run().sizes(), random);
    auto floats = c.inputs_as(at::kFloat);
    for (auto& entry : floats) entry.second.requires_grad_(true);
    const auto expected = gradients(c, c.inputs_with_grad(), weight);
    for (const auto& [name, gradient] : gradients(c, floats, weight.to(at::kFloat)))
      EXPECT_LE(error(gradient, expected.at(name)), 1e-5) << name;
  }
}

TEST(Gradient, OfEveryElementAgreesWithFiniteDifferencesForEachMethod) {
  int64_t elements = 0;
  for (const auto& entry : kMethods)
    for (const bool causal : {false, true}) {
      Config config;
      config.method = entry.value;
      config.grid = {2, 2};
      config.cls = true;
      config.causal = causal;
      config.C = 3;
      config.H = 2;
      config.D = 4;
      const Case c(config);
      elements += expect_elementwise_gradients([&](const Inputs& in) { return c.run(in); },
                                               c.inputs(), config.str());
    }
  std::printf("%lld elements\n", static_cast<long long>(elements));
}

}  // namespace
}  // namespace translution::testing
