// Precision bf16 in edge cases: strides, threads, empty batches, and bfloat16 tensors.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ops/precision_cases.h"
#include "tests/support/layouts.h"
#include "tests/support/thread_count.h"
#include "translution/ops/runtime.h"

namespace translution::testing {
namespace {

// Every choice on layouts that use different code paths of the kernels.
std::vector<Config> edge_configs(const std::vector<std::string>& names = {"text", "rows of 17",
                                                                          "image of 64"}) {
  std::vector<Config> configs;
  for (const auto& layout : precision_layouts()) {
    if (std::find(names.begin(), names.end(), layout.name) == names.end()) continue;
    for (const Config& choice : precision_choices()) configs.push_back(with_layout(choice, layout));
  }
  return configs;
}

std::vector<Bf16Projection> edge_projections() {
  std::vector<Bf16Projection> all;
  for (int64_t rows = 1; rows <= 33; ++rows)
    all.push_back({rows, rows % 2 ? 97 : 72, 26, rows % 3 == 0, rows % 4 == 0});
  return all;
}

template <typename Change>
Inputs changed(Inputs inputs, const Change& change) {
  for (auto& entry : inputs) entry.second = change(entry.second);
  return inputs;
}

Inputs as_type(const Inputs& inputs, at::ScalarType type) {
  return changed(inputs, [type](const at::Tensor& t) { return t.to(type); });
}

// The output and gradients of a call, or of a projection.
Inputs quantities(const Config& config, const Inputs& inputs, const at::Tensor& d_out,
                  bool map = true) {
  const Case c(config);
  return quantities_of(
      inputs, [&c, map](const Inputs& in) { return c.attend(in, map); }, d_out);
}
Inputs quantities(const Bf16Projection& p, const Inputs& inputs, const at::Tensor& d_out) {
  return quantities_of(
      inputs,
      [&p](const Inputs& in) {
        return MethodResult{p.ours(in), {}};
      },
      d_out);
}

Inputs inputs_for(const Config& config) { return Case(config).inputs_as(at::kFloat); }
Inputs inputs_for(const Bf16Projection& p) { return as_type(p.inputs(), at::kFloat); }

at::Tensor run(const Config& config, const Inputs& inputs) { return Case(config).run(inputs); }
at::Tensor run(const Bf16Projection& p, const Inputs& inputs) { return p.ours(inputs); }

template <typename Subject>
at::Tensor gradient_for(const Subject& subject, const Inputs& inputs) {
  auto random = generator("gradient of " + subject.str());
  return normal(run(subject, inputs).sizes(), random).to(at::kFloat);
}

void expect_same_bits(const Inputs& got, const Inputs& expected) {
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(got.count(name)) << name;
    EXPECT_TRUE(at::equal(got.at(name), tensor))
        << name << " differs by up to " << (got.at(name) - tensor).abs().max().item<double>();
  }
}

template <typename Subject, typename Layout>
void expect_layout_does_not_matter(const Subject& subject, const Layout& layout) {
  SCOPED_TRACE(subject.str());
  const auto inputs = inputs_for(subject);
  const auto d_out = gradient_for(subject, inputs);
  expect_same_bits(quantities(subject, changed(inputs, layout), layout(d_out)),
                   quantities(subject, inputs, d_out));
}

template <typename Layout>
void expect_layout_does_not_matter(const Layout& layout) {
  for (const auto& config : edge_configs()) expect_layout_does_not_matter(config, layout);
  for (const auto& p : edge_projections()) expect_layout_does_not_matter(p, layout);
}

TEST(Bf16Layout, TransposedInputsGiveTheSameBits) { expect_layout_does_not_matter(columns_first); }

TEST(Bf16Layout, InputsWithGapsGiveTheSameBits) { expect_layout_does_not_matter(every_second); }

TEST(Bf16Layout, MisalignedInputsGiveTheSameBits) { expect_layout_does_not_matter(misaligned); }

template <typename Subject>
std::vector<Inputs> all_quantities(const std::vector<Subject>& subjects, int threads) {
  const ThreadCount count(threads);
  std::vector<Inputs> all;
  for (const auto& subject : subjects) {
    const auto inputs = inputs_for(subject);
    all.push_back(quantities(subject, inputs, gradient_for(subject, inputs)));
  }
  return all;
}

template <typename Subject>
void expect_threads_do_not_matter(const std::vector<Subject>& subjects) {
  const auto one = all_quantities(subjects, 1);
  for (const int threads : {1, 2, 3, 8}) {
    const auto more = all_quantities(subjects, threads);
    for (size_t n = 0; n < subjects.size(); ++n) {
      SCOPED_TRACE(subjects[n].str() + ", " + std::to_string(threads) + " threads");
      expect_same_bits(more[n], one[n]);
    }
  }
}

TEST(Bf16Threads, AnyNumberGivesTheSameBits) {
  if (!runtime().fused()) GTEST_SKIP() << "LibTorch's own matrix products do not guarantee this";
  expect_threads_do_not_matter(edge_configs());
  auto projections = edge_projections();
  projections.push_back({1100, 192, 97, true, true});
  projections.push_back({3000, 97, 192, false, false});
  expect_threads_do_not_matter(projections);
}

TEST(Bf16Sizes, AnEmptyBatchGivesAnEmptyOutputAndGradientsOfZero) {
  for (const auto type : {at::kFloat, at::kBFloat16})
    for (Config config : edge_configs({"text", "rows of 17"})) {
      config.B = 0, config.dropout = 0;
      SCOPED_TRACE(config.str());
      const auto inputs = Case(config).inputs_as(type);
      const int64_t rows =
          config.rows.empty() ? config.tokens() : static_cast<int64_t>(config.rows.size());
      const auto found = quantities(config, inputs, at::zeros({0, rows, config.H * config.D}));
      EXPECT_EQ(found.at("out").sizes(), (at::IntArrayRef{0, rows, config.H * config.D}));
      EXPECT_EQ(found.at("out").scalar_type(), type);
      for (const auto& [name, tensor] : inputs) {
        if (!found.count("d " + name)) continue;
        EXPECT_TRUE(at::equal(found.at("d " + name), at::zeros_like(tensor))) << name;
      }
    }
}

TEST(Bf16Sizes, NoRowsGiveGradientsOfZero) {
  for (const bool transposed : {false, true}) {
    const Bf16Projection p{0, 97, 26, transposed, true};
    const auto inputs = inputs_for(p);
    for (const auto& [name, tensor] : quantities(p, inputs, at::zeros({0, 3 * p.out}))) {
      if (name == "out") continue;
      EXPECT_TRUE(at::equal(tensor, at::zeros_like(inputs.at(name.substr(2))))) << name;
    }
  }
}

// Tensors between two ops of a method are bfloat16, so there are a few more roundings than in the
// formula.
TEST(Bf16Tensors, GiveResultsAndGradientsOfTheirTypeInEitherPrecision) {
  constexpr double kMaxError = 4;
  for (const Precision precision : {Precision::float32, Precision::bf16})
    for (Config config : edge_configs({"text", "rows of 17"})) {
      config.precision = precision;
      SCOPED_TRACE(config.str());
      const Case c(config);
      const auto inputs = c.inputs_as(at::kBFloat16);
      const auto d_out = gradient_for(config, inputs).to(at::kBFloat16);
      const auto plain = [&c](rounded_oracle::Rounding rounding) {
        return [&c, rounding](const Inputs& in) { return c.plain(in, rounding); };
      };
      const auto found = quantities(config, inputs, d_out);
      const auto exact =
          quantities_of(as_type(inputs, at::kDouble), plain(rounded_oracle::Rounding::none), d_out);
      const auto rounded =
          quantities_of(as_type(inputs, at::kFloat), plain(rounded_oracle::Rounding::bf16), d_out);
      for (const auto& [name, tensor] : found) {
        if (name == "map") continue;
        EXPECT_EQ(tensor.scalar_type(), at::kBFloat16) << name;
        const auto& truth = exact.at(name);
        const double error = (tensor.to(at::kDouble) - truth).norm().item<double>();
        const double formula = (rounded.at(name) - truth).norm().item<double>();
        const double last = truth.norm().item<double>() / 512;  // rounding the result itself
        EXPECT_LE(error, kMaxError * (formula + last))
            << name << ", formula " << formula << ", norm " << truth.norm().item<double>();
      }
    }
}

// Equal except for the order of sums: a product with few rows does not pack the matrix.
void expect_same_numbers(const Inputs& got, const Inputs& expected) {
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(got.count(name)) << name;
    const bool narrow = tensor.scalar_type() == at::kBFloat16;
    const auto a = got.at(name).to(at::kDouble), b = tensor.to(at::kDouble);
    EXPECT_LE((a - b).norm().item<double>(), (narrow ? 2e-3 : 2e-4) * b.norm().item<double>())
        << name;
  }
}

// Inference may store its weights in bfloat16.
TEST(Bf16Weights, WithFloat32FeaturesEqualRoundedFloat32Weights) {
  const auto expect_same = [](const auto& subject) {
    SCOPED_TRACE(subject.str());
    auto narrow = inputs_for(subject), wide = narrow;
    for (const auto& [name, tensor] : inputs_for(subject)) {
      if (name == "x") continue;
      narrow[name] = tensor.to(at::kBFloat16);
      wide[name] = narrow[name].to(at::kFloat);
    }
    const auto d_out = gradient_for(subject, wide);
    auto expected = quantities(subject, wide, d_out), found = quantities(subject, narrow, d_out);
    EXPECT_EQ(found.at("out").scalar_type(), at::kFloat);
    for (auto& [name, tensor] : expected) {  // gradients have the type of their weights
      if (name == "d x" || name == "out" || name == "map") continue;
      EXPECT_EQ(found.at(name).scalar_type(), at::kBFloat16) << name;
      tensor = tensor.to(at::kBFloat16);
    }
    expect_same_numbers(found, expected);
  };
  for (const auto& config : edge_configs()) expect_same(config);
  for (const auto& p : edge_projections()) expect_same(p);
}

TEST(Bf16Meta, GivesSizesAndTypesOfOutputsAndGradients) {
  for (const auto type : {at::kFloat, at::kBFloat16})
    for (Config config : edge_configs({"text", "rows of 17"})) {
      config.dropout = 0;
      SCOPED_TRACE(config.str());
      const Case c(config);
      const auto real = c.inputs_as(type);
      const auto d_out = gradient_for(config, real).to(type);
      const auto to_meta = [](const at::Tensor& t) { return t.to(at::kMeta); };
      const auto found = quantities(config, changed(real, to_meta), to_meta(d_out), /*map=*/false);
      for (const auto& [name, tensor] : quantities(config, real, d_out, /*map=*/false)) {
        ASSERT_TRUE(found.count(name)) << name;
        EXPECT_TRUE(found.at(name).is_meta()) << name;
        EXPECT_EQ(found.at(name).sizes(), tensor.sizes()) << name;
        EXPECT_EQ(found.at(name).scalar_type(), tensor.scalar_type()) << name;
      }
    }
}

TEST(Bf16Rows, ARowThatSeesNoTokenIsZeroAndHasZeroGradients) {
  for (const auto& entry : kMethods) {
    Config config = relation_config(entry.value);
    config.precision = Precision::bf16;
    if (entry.value == Method::rotary) config.D = 4, config.grid = {6};
    SCOPED_TRACE(config.str());
    const auto inputs = inputs_for(config);
    const auto out = run(config, inputs);
    EXPECT_TRUE(at::equal(out.select(1, 2), at::zeros_like(out.select(1, 2))));
    EXPECT_GT(out.select(1, 3).abs().min().item<double>(), 0);
    auto d_out = at::zeros_like(out);
    d_out.select(1, 2).fill_(1);
    for (const auto& [name, tensor] : quantities(config, inputs, d_out)) {
      if (name == "out" || name == "map") continue;
      EXPECT_TRUE(at::equal(tensor, at::zeros_like(tensor))) << name;
    }
  }
}

}  // namespace
}  // namespace translution::testing
