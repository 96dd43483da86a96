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

#include "tests/support/cases.h"
#include "tests/support/expect.h"
#include "tests/support/terms.h"
#include "translution/core/error.h"
#include "translution/ops/project.h"

namespace translution::testing {
namespace {

using rounded_oracle::Rounding;

constexpr double kMostError = 1.5;  // times that of the rounded formula
// Which of two orders of summing rounds a few numbers better is a matter of luck.
constexpr int64_t kFew = 64;
constexpr double kMostErrorOfFew = 3;
constexpr double kFloatError = 2e-6;  // of sums in float32, relative to the norm

// Tokens, batch and widths that fit no tile.
struct Layout {
  const char* name;
  std::vector<int64_t> grid;
  bool cls = false, causal = false;
  int64_t B = 3, C = 26, H = 2, D = 13, R = 5;
  std::vector<int64_t> rows = {};
  Encoding encoding = Encoding::relative;
  Sharing sharing = Sharing::none;
  int64_t radius = 1;
  bool mask_only = false;
};

// How a failing test tells its parameter.
void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }

// From 16 samples on, narrow layers lie with the samples last.
const std::vector<Layout>& layouts() {
  constexpr auto kRelative = Encoding::relative, kAbsolute = Encoding::absolute;
  static const std::vector<Layout> all = {
      {"image", {7, 5}, true, false, 3, 26, 2, 13, 5},
      {"wide image", {7, 5}, true, false, 1, 72, 3, 24, 11},
      {"text", {13}, false, true, 3, 97, 1, 97, 33},
      {"text by mask", {13}, false, true, 3, 72, 2, 36, 9, {}, kRelative, Sharing::none, 1, true},
      {"volume", {3, 3, 2}, false, false, 1, 97, 3, 24, 8},
      {"absolute", {3, 2}, true, false, 3, 72, 2, 36, 8, {}, kAbsolute},
      {"direction", {5, 4}, true, false, 3, 26, 2, 13, 5, {}, kRelative, Sharing::direction},
      {"logarithmic", {4, 5}, 0, 0, 17, 26, 3, 8, 7, {}, kRelative, Sharing::logarithmic, 0},
      {"rows", {4, 3}, true, false, 3, 97, 3, 31, 7, {5, 0, 6, 5}},
      {"rows of 17", {4, 3}, true, false, 17, 26, 2, 13, 5, {5, 0, 6, 5}},
      {"volume of 17", {3, 3, 2}, false, false, 17, 26, 3, 8, 6},
      {"text of 64", {9}, false, true, 64, 26, 2, 13, 5},
      {"image of 64", {2, 3}, true, false, 64, 72, 2, 36, 8},
      {"widest image", {2, 3}, true, false, 3, 192, 3, 64, 24},
      {"narrow heads", {3, 3}, false, false, 3, 192, 3, 8, 5},
      {"wide heads", {5}, false, true, 17, 26, 1, 192, 72},
      {"one token", {1}, false, false, 17, 72, 3, 24, 8},
  };
  return all;
}

// Every method with the choices that change what is multiplied.
std::vector<Config> choices() {
  std::vector<Config> all;
  const auto add = [&all](Method method, auto... changes) {
    all.emplace_back().method = method;
    (changes(all.back()), ...);
  };
  for (const auto& entry : kMethods) add(entry.value);
  for (const char* roles : {"q", "k", "v", "qk", "qv", "kv"})
    add(Method::translution, [&](Config& c) { c.roles = Roles::parse(roles); });
  for (const char* roles : {"none", "k", "v", "qk"})
    add(Method::alpha_translution, [&](Config& c) { c.roles = Roles::parse(roles); });
  for (const char* roles : {"none", "qkv", "q", "v"})
    add(Method::alpha_translution,
        [&](Config& c) { c.roles = Roles::parse(roles), c.shared = false; });
  add(Method::alpha_translution, [](Config& c) { c.mixing = Mixing::mean, c.dropout = 0.3; });
  add(Method::alpha_translution, [](Config& c) { c.rotary = true; });
  add(Method::translution, [](Config& c) { c.dropout = 0.3; });
  add(Method::translution, [](Config& c) { c.rotary = true, c.roles = Roles::parse("v"); });
  for (const Method method : {Method::self_attention, Method::relative_key})
    add(method, [](Config& c) { c.biases = true, c.dropout = 0.3; });
  return all;
}

Config with_layout(Config config, const Layout& layout) {
  config.grid = layout.grid;
  config.cls = layout.cls, config.causal = layout.causal, config.mask_only = layout.mask_only;
  config.B = layout.B, config.C = layout.C, config.H = layout.H;
  config.D = layout.D, config.R = layout.R;
  config.rows = layout.rows;
  if (config.method != Method::convolution) config.encoding = layout.encoding;
  config.sharing = layout.sharing, config.radius = layout.radius;
  const int64_t pairs = 2 * static_cast<int64_t>(config.grid.size());
  if (config.rotary || config.method == Method::rotary)
    config.D = (config.D + pairs) / pairs * pairs;
  config.precision = Precision::bf16;
  return config;
}

// Output, map and gradients by name.
template <typename Attend>
Inputs quantities_of(const Inputs& inputs, const Attend& attend, const at::Tensor& d_out) {
  Inputs leaves, all;
  for (const auto& [name, tensor] : inputs)
    leaves[name] = tensor.detach().clone().requires_grad_(true);
  const MethodResult result = attend(leaves);
  result.out.backward(d_out.to(result.out.scalar_type()));
  all["out"] = result.out.detach();
  if (result.map.defined()) all["map"] = result.map.detach();
  for (const auto& [name, leaf] : leaves)
    if (leaf.grad().defined()) all["d " + name] = leaf.grad();
  return all;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b).norm().item<double>();
}

// The worst ratio of an error to that of the rounded formula; a table of all where one is too
// large.
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
    const double factor = exact.numel() < kFew ? kMostErrorOfFew : kMostError;
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

// The formula in plain operations is the one of the loops over doubles.
TEST(RoundedOracle, WithoutRoundingIsTheOracle) {
  for (const char* name : {"text by mask", "absolute", "direction", "rows", "narrow heads"})
    for (const auto& layout : layouts())
      for (Config config : choices()) {
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

class MethodAccuracy : public ::testing::TestWithParam<Layout> {};

TEST_P(MethodAccuracy, IsThatOfTheSameRoundingsInPlainOperations) {
  for (const Config& config : choices()) expect_accurate(with_layout(config, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Layouts, MethodAccuracy, ::testing::ValuesIn(layouts()),
                         [](const auto& layout) {
                           std::string name = layout.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

// Squares of errors, summed over many small calls.
struct ErrorSums {
  double ours = 0, rounded = 0, norm = 0;

  void add(const at::Tensor& our, const at::Tensor& reference, const at::Tensor& exact) {
    ours += std::pow(distance(our, exact), 2);
    rounded += std::pow(distance(reference, exact), 2);
    norm += exact.square().sum().item<double>();
  }
  double ratio() const { return std::sqrt(ours / rounded); }
  bool fits() const {
    return std::sqrt(ours) <= kMostError * std::sqrt(rounded) + kFloatError * std::sqrt(norm);
  }
};

TEST(Accuracy, OfTheCoreOpIsThatOfTheSameRoundingsForEveryCombinationOfTerms) {
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

// A projection by two weights, the second twice as wide.
struct Projection {
  int64_t rows, in, out;
  bool transposed, biased;

  std::string str() const {
    return join("project rows ", rows, " in ", in, " out ", out, transposed ? " transposed" : "",
                biased ? " biased" : "");
  }

  Inputs inputs() const {
    auto random = generator(str());
    Inputs all{{"x", normal({rows, in}, random)}};
    for (const int64_t w : {1, 2}) {
      const auto weight = normal({in, w * out}, random) / std::sqrt(static_cast<double>(in));
      all[join("weight ", w)] = transposed ? weight.t().contiguous() : weight;
      if (biased) all[join("bias ", w)] = normal({w * out}, random);
    }
    return all;
  }

  at::Tensor ours(const Inputs& in) const {
    std::vector<at::Tensor> biases;
    if (biased) biases = {in.at("bias 1"), in.at("bias 2")};
    return at::cat(project(in.at("x"), {in.at("weight 1"), in.at("weight 2")}, biases, transposed,
                           Precision::bf16),
                   1);
  }

  at::Tensor plain(const Inputs& in, Rounding rounding) const {
    std::vector<at::Tensor> products;
    for (const char* w : {"1", "2"}) {
      const auto weight = in.at(join("weight ", w));
      products.push_back(rounded_oracle::product(in.at("x"), transposed ? weight.t() : weight,
                                                 rounding,
                                                 biased ? in.at(join("bias ", w)) : at::Tensor()));
    }
    return at::cat(products, 1);
  }
};

void expect_accurate(const Projection& p) {
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

TEST(Accuracy, OfProjectionsIsThatOfTheSameRoundingsForOneTo33Rows) {
  for (int64_t rows = 1; rows <= 33; ++rows)
    for (const int64_t in : {26, 72, 97, 192})
      for (const int64_t out : {1, 26, 97})
        expect_accurate({rows, in, out, rows % 2 == 0, rows % 3 == 0});
  for (const int64_t rows : {64, 129, 1100})
    for (const bool transposed : {false, true}) expect_accurate({rows, 192, 72, transposed, true});
}

}  // namespace
}  // namespace translution::testing
