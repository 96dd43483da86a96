// Precision bf16 against double: the error of every output, map and gradient is at most 1.5 times
// that of the same formula in plain LibTorch operations with the same roundings
// (tests/support/rounded_oracle.h).

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "tests/ops/precision_cases.h"
#include "tests/support/expect.h"
#include "tests/support/terms.h"

namespace translution::testing {
namespace {

using rounded_oracle::Rounding;

constexpr double kMaxError = 1.5;  // relative to the error of the rounded formula
// For a few numbers, it is random which of two orders of summation rounds better.
constexpr int64_t kFew = 64;
constexpr double kMaxErrorOfFew = 3;
constexpr double kFloatError = 2e-6;  // error of sums in float32, relative to the norm

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b).norm().item<double>();
}

// Returns the largest ratio of an error to that of the rounded formula. Prints a table of all
// errors if one is too large.
double expect_no_worse(const Inputs& ours, const Inputs& rounded, const Inputs& truth) {
  std::string table = "\n  quantity              ours   rounded formula   ratio   norm\n";
  bool failed = false;
  double worst = 0;
  for (const auto& [name, exact] : truth) {
    const auto found = ours.find(name);
    if (found == ours.end()) {
      if (name != "map") ADD_FAILURE() << name << " is missing";
      continue;
    }
    EXPECT_EQ(found->second.sizes(), exact.sizes()) << name;
    if (found->second.sizes() != exact.sizes()) continue;
    const double error = distance(found->second, exact);
    const double allowed = distance(rounded.at(name), exact), norm = exact.norm().item<double>();
    // The exact gradient of a key's bias is 0, so its error is random, too.
    const bool is_random = exact.numel() < kFew || norm < kFloatError * allowed;
    const double factor = is_random ? kMaxErrorOfFew : kMaxError;
    const bool fits = error <= factor * allowed + kFloatError * std::max(norm, 1.0);
    failed = failed || !fits;
    if (allowed > kFloatError * norm) worst = std::max(worst, error / allowed);
    char line[120];
    std::snprintf(line, sizeof line, "%s %-16s %10.3g %17.3g %7.2f %6.3g\n", fits ? " " : "!",
                  name.c_str(), error, allowed, error / allowed, norm);
    table += line;
  }
  EXPECT_FALSE(failed) << table;
  return worst;
}

void expect_accurate(const Config& config) {
  SCOPED_TRACE(config.str() + ", seed " + std::to_string(kSeed));
  const Case c(config);
  const auto inputs = c.inputs_as(at::kFloat);
  Inputs exact;
  for (const auto& [name, tensor] : inputs) exact[name] = tensor.to(at::kDouble);
  auto random = generator("gradient of " + config.str());
  const auto d_out = normal(c.run(inputs).sizes(), random).to(at::kFloat);

  const auto plain = [&c](Rounding rounding) {
    return [&c, rounding](const Inputs& in) { return c.plain(in, rounding); };
  };
  const auto truth = quantities_of(exact, plain(Rounding::none), d_out);
  const auto rounded = quantities_of(inputs, plain(Rounding::bf16), d_out);
  const auto ours = quantities_of(
      inputs, [&c](const Inputs& in) { return c.attend(in, /*map=*/true); }, d_out);
  const double worst = expect_no_worse(ours, rounded, truth);
  std::printf("%5.2f  %s, seed %llu\n", worst, config.str().c_str(),
              static_cast<unsigned long long>(kSeed));
}

// Checks the formula in plain operations against the loops over doubles.
TEST(RoundedOracle, EqualsTheOracleWithoutRounding) {
  for (const char* name : {"text by mask", "absolute", "direction", "rows", "narrow heads"})
    for (const auto& layout : precision_layouts())
      for (Config config : precision_choices()) {
        if (layout.name != std::string(name)) continue;
        config = with_layout(config, layout);
        config.B = 2, config.C = 5, config.R = 2;
        if (config.D > 12) config.D = 12;
        SCOPED_TRACE(config.str());
        const Case c(config);
        EXPECT_LE(error(c.plain(c.inputs(), Rounding::none).out, c.expected()), kRounding);
      }
  for (const auto& entry : kMethods) {
    Config config = relation_config(entry.value);
    if (entry.value == Method::rotary) config.D = 4, config.grid = {6};
    SCOPED_TRACE(config.str());
    const Case c(config);
    EXPECT_LE(error(c.plain(c.inputs(), Rounding::none).out, c.expected()), kRounding);
  }
}

class MethodAccuracy : public ::testing::TestWithParam<PrecisionLayout> {};

TEST_P(MethodAccuracy, MatchesPlainOperationsWithTheSameRoundings) {
  for (const Config& config : precision_choices()) expect_accurate(with_layout(config, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Layouts, MethodAccuracy, ::testing::ValuesIn(precision_layouts()),
                         [](const auto& layout) {
                           std::string name = layout.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

// Squared errors, summed over many small calls.
struct ErrorSums {
  double ours = 0, rounded = 0, norm = 0;

  void add(const at::Tensor& our, const at::Tensor& reference, const at::Tensor& exact) {
    ours += std::pow(distance(our, exact), 2);
    rounded += std::pow(distance(reference, exact), 2);
    norm += exact.square().sum().item<double>();
  }
  double ratio() const { return std::sqrt(ours / rounded); }
  bool fits() const {
    return std::sqrt(ours) <= kMaxError * std::sqrt(rounded) + kFloatError * std::sqrt(norm);
  }
};

TEST(Accuracy, OfTheCoreOpMatchesTheSameRoundingsForEveryCombinationOfTerms) {
  std::map<std::string, ErrorSums> sums;
  for (const TermsConfig& config : all_terms()) {
    SCOPED_TRACE(config.str());
    TermsCase c(config);
    c.call().precision = Precision::bf16;
    c.call().keep = c.call().keep.defined() ? c.call().keep.to(at::kFloat) : at::Tensor();
    Inputs inputs, exact;
    for (const auto& [name, tensor] : c.inputs()) {
      inputs[name] = tensor.to(at::kFloat);
      exact[name] = inputs[name].to(at::kDouble);
    }
    auto random = generator("gradient of " + config.str());
    const auto d_out = normal(c.run(inputs).sizes(), random).to(at::kFloat);
    const auto plain = [&c](Rounding rounding) {
      return [&c, rounding](const Inputs& in) { return MethodResult{c.plain(in, rounding), {}}; };
    };
    const auto truth = quantities_of(exact, plain(Rounding::none), d_out);
    const auto rounded = quantities_of(inputs, plain(Rounding::bf16), d_out);
    const auto ours = quantities_of(
        inputs,
        [&c](const Inputs& in) {
          return MethodResult{c.run(in), {}};
        },
        d_out);
    for (const auto& [name, tensor] : truth) {
      ASSERT_TRUE(ours.count(name)) << name;
      sums[name].add(ours.at(name), rounded.at(name), tensor);
    }
  }
  for (const auto& [name, sum] : sums) {
    std::printf("%5.2f  %s of every combination of terms, seed %llu\n", sum.ratio(), name.c_str(),
                static_cast<unsigned long long>(kSeed));
    EXPECT_TRUE(sum.fits()) << name << ": ours " << std::sqrt(sum.ours) << ", rounded formula "
                            << std::sqrt(sum.rounded) << ", norm " << std::sqrt(sum.norm);
  }
}

void expect_accurate(const Bf16Projection& p) {
  SCOPED_TRACE(p.str() + ", seed " + std::to_string(kSeed));
  Inputs inputs, exact;
  for (const auto& [name, tensor] : p.inputs()) {
    inputs[name] = tensor.to(at::kFloat);
    exact[name] = inputs[name].to(at::kDouble);
  }
  auto random = generator("gradient of " + p.str());
  const auto d_out = normal({p.rows, 3 * p.out}, random).to(at::kFloat);
  const auto plain = [&p](Rounding rounding) {
    return [&p, rounding](const Inputs& in) { return MethodResult{p.plain(in, rounding), {}}; };
  };
  expect_no_worse(quantities_of(
                      inputs,
                      [&p](const Inputs& in) {
                        return MethodResult{p.ours(in), {}};
                      },
                      d_out),
                  quantities_of(inputs, plain(Rounding::bf16), d_out),
                  quantities_of(exact, plain(Rounding::none), d_out));
}

TEST(Accuracy, OfProjectionsMatchesTheSameRoundingsForOneTo33Rows) {
  for (int64_t rows = 1; rows <= 33; ++rows)
    for (const int64_t in : {26, 72, 97, 192})
      for (const int64_t out : {1, 26, 97})
        expect_accurate({rows, in, out, rows % 2 == 0, rows % 3 == 0});
  for (const int64_t rows : {64, 129, 1100})
    for (const bool transposed : {false, true}) expect_accurate({rows, 192, 72, transposed, true});
}

}  // namespace
}  // namespace translution::testing
