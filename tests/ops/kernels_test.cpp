// Tests of the CPU kernels in addition to those of every implementation: they are used, their
// rounding error is at most twice that of plain LibTorch calls, and their bits do not depend on the
// number of threads.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/cases.h"
#include "tests/support/portable_only.h"
#include "tests/support/terms.h"
#include "tests/support/thread_count.h"
#include "translution/ops/runtime.h"

namespace translution::testing {
namespace {

// Every method at sizes that fill blocks, vectors and threads and leave a remainder. Products are
// narrow enough for libxsmm in some configs, and wide enough for oneDNN in others.
std::vector<Config> layers() {
  std::vector<Config> configs;
  for (const auto& entry : kMethods)
    for (const bool causal : {false, true}) {
      if (entry.value == Method::convolution) continue;  // has no kernels
      Config config;
      config.method = entry.value;
      config.grid = {5, 7};
      config.cls = !causal;
      config.causal = causal;
      config.B = 19, config.C = 26, config.H = 3, config.D = 20, config.R = 8;
      configs.push_back(config);
      config.C = 72, config.D = 24;
      configs.push_back(config);
    }
  return configs;
}

Inputs leaves(const Case& c, at::ScalarType type) {
  auto inputs = c.inputs_as(type);
  for (auto& [name, tensor] : inputs) tensor = tensor.detach().clone().requires_grad_(true);
  return inputs;
}

// The output as "out", and the gradient of every input.
Inputs results(const Case& c, const Inputs& inputs, const at::Tensor& weight) {
  auto all = gradients(c, inputs, weight.to(inputs.at("x").scalar_type()));
  all["out"] = c.run(inputs).detach();
  return all;
}

// |a - b| / |b|: the total rounding error, because the maximum alone is random.
double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b).norm().item<double>() / b.norm().item<double>();
}

TEST(Kernels, HaveAtMostTwiceTheRoundingErrorOfThePortablePath) {
  for (const Config& config : layers()) {
    SCOPED_TRACE(config.str());
    const Case c(config);
    auto random = generator("rounding " + config.str());
    const auto weight = normal(c.run().sizes(), random).to(at::kFloat);
    const auto floats = leaves(c, at::kFloat);
    Inputs exact;
    for (const auto& [name, tensor] : floats)
      exact[name] = tensor.detach().to(at::kDouble).requires_grad_(true);
    const auto expected = results(c, exact, weight);
    const auto got = results(c, floats, weight);
    const PortableOnly portable;
    for (const auto& [name, theirs] : results(c, floats, weight))
      EXPECT_LE(distance(got.at(name), expected.at(name)),
                2 * distance(theirs, expected.at(name)) + 1e-7)
          << name;
  }
}

TEST(Kernels, GiveTheSameBitsOnAnyNumberOfThreads) {
  if (runs_portable()) GTEST_SKIP() << "LibTorch's own matrix products do not guarantee this";
  ThreadCount threads_now(1);
  for (Config config : layers())
    for (const int64_t batch : {1, 19})
      for (const auto type : {at::kFloat, at::kDouble}) {
        if (config.C > 64 && (batch == 1 || type == at::kDouble)) continue;  // covered by C <= 64
        config.B = batch;
        SCOPED_TRACE(config.str());
        const Case c(config);
        auto random = generator("threads " + config.str());
        const auto weight = normal(c.run().sizes(), random);
        const auto inputs = leaves(c, type);
        threads_now.set(1);
        const auto one = results(c, inputs, weight);
        for (const int threads : {2, 3}) {
          threads_now.set(threads);
          for (const auto& [name, tensor] : results(c, inputs, weight))
            EXPECT_TRUE(at::equal(tensor, one.at(name))) << threads << " threads, " << name;
        }
      }
}

// Gradients of all terms of the core op, and its output.
std::vector<at::Tensor> results(const TermsCase& c) {
  Inputs inputs;
  std::vector<at::Tensor> list;
  for (const auto& [name, tensor] : c.inputs())
    list.push_back(inputs[name] = tensor.clone().requires_grad_(true));
  auto random = generator("weights of the output");
  const auto out = c.run(inputs);
  auto all = torch::autograd::grad({(out * normal(out.sizes(), random)).sum()}, list);
  all.push_back(out.detach());
  return all;
}

// With 16 or more samples, narrow rows are stored with the batch last. 17 and 31 samples leave
// vectors partly filled; 128 are split into two parts.
TEST(Kernels, AgreeWithThePortablePathOnManySamples) {
  // 7 entries: a period that no other option has.
  constexpr int64_t kSamples[] = {17, 31, 128, 17, 31, 128, 128};
  size_t count = 0;
  for (TermsConfig config : all_terms()) {
    config.B = kSamples[count++ % 7];
    SCOPED_TRACE(config.str());
    const TermsCase c(config);
    const auto got = results(c);
    const PortableOnly portable;
    const auto expected = results(c);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_LE(error(got[i], expected[i]), 1e-12) << i;
  }
}

// FLOPs of the kernels' products in forward and backward of the core op.
int64_t flops(const TermsCase& c) {
  const auto before = runtime().product_flops();
  results(c);
  return runtime().product_flops() - before;
}

TEST(Kernels, AreUsedForVectorsBiasAndGate) {
  if (runs_portable()) GTEST_SKIP() << "no kernels";
  // 7 tokens, 2 samples, 2 heads; per head 3 channels of content and 2 of vectors. There is one
  // product over all pairs for scores and one for values, and two for the gradient of each.
  const auto pairs = int64_t{7 * 7 * 2 * 2};
  const auto products = [&](int64_t channels) { return 3 * 2 * pairs * channels; };
  TermsConfig config;
  EXPECT_EQ(flops(TermsCase(config)), products(3 + 3));
  for (const bool bias : {false, true})
    for (const bool gate : {false, true})
      for (const bool keys : {false, true})
        for (const bool values : {false, true}) {
          config.bias = bias, config.gate = gate;
          config.q = keys ? Side::features : Side::none;
          config.k = keys ? Side::vectors : Side::none;
          config.v = values ? Side::vectors : Side::none;
          SCOPED_TRACE(config.str());
          EXPECT_EQ(flops(TermsCase(config)), products(3 + 3 + (keys ? 2 : 0) + (values ? 2 : 0)));
        }
  const PortableOnly portable;
  EXPECT_EQ(flops(TermsCase(config)), 0);
}

}  // namespace
}  // namespace translution::testing
