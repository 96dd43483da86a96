// A layer in bf16 may cache packed copies of its weights. It detects every write to the weights:
// its output and gradients are bit for bit those of a new layer with the same weights.

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <sstream>

#include "tests/nn/positions.h"
#include "tests/support/filled.h"
#include "translution/nn/block.h"
#include "translution/train/adamw.h"

namespace translution::testing {
namespace {

using Results = std::vector<at::Tensor>;

AttentionOptions options_of(const Position& position) {
  const bool text = position.method == Method::rotary;
  return AttentionOptions(72)
      .heads(2)
      .dim_head(36)
      .grid(text ? std::vector<int64_t>{7} : std::vector<int64_t>{2, 3})
      .cls(!text)
      .position(position)
      .precision(Precision::bf16);
}

at::Tensor input(double bound = 1.7) { return filled("x", {3, 7, 72}, bound).to(at::kFloat); }

// The output and every gradient.
template <typename Module>
Results results_of(Module& module) {
  module->zero_grad();
  auto x = input().requires_grad_();
  const auto y = module->forward(x);
  y.backward(filled("gradient of the output", y.sizes(), 1).to(at::kFloat));
  Results results = {y.detach(), x.grad()};
  for (const auto& parameter : module->parameters()) results.push_back(parameter.grad().clone());
  return results;
}

// The output of a call without gradients.
template <typename Module>
at::Tensor inferred(Module& module) {
  const torch::NoGradGuard no_grad;
  return module->forward(input());
}

bool same(const Results& a, const Results& b) {
  for (size_t n = 0; n < a.size(); ++n)
    if (!same_bits(a[n], b[n])) return false;
  return true;
}

// A new module with copies of the weights.
template <typename Module, typename... Args>
Module fresh_copy(const Module& module, const Args&... args) {
  Module copy(args...);
  const torch::NoGradGuard no_grad;
  const auto from = module->parameters();
  auto to = copy->parameters();
  for (size_t n = 0; n < from.size(); ++n) to[n].copy_(from[n].clone());
  return copy;
}

// A way to change weights. Every parameter has a gradient when it is called.
struct Write {
  const char* name;
  std::function<void(torch::nn::Module&)> change;
};

void for_each(torch::nn::Module& module, const std::function<void(at::Tensor&)>& change) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) change(parameter);
}

std::vector<Write> writes() {
  const auto each = [](std::function<void(at::Tensor&)> change) {
    return [change](torch::nn::Module& module) { for_each(module, change); };
  };
  return {
      {"copy_", each([](at::Tensor& p) { p.copy_(filled("copied", p.sizes(), 0.1)); })},
      {"uniform_", each([](at::Tensor& p) { p.uniform_(-0.1, 0.1); })},
      {"add_", each([](at::Tensor& p) { p.add_(0.01); })},
      {"add_ to one slot", each([](at::Tensor& p) { p.select(0, p.size(0) - 1).add_(0.05); })},
      {"one number", each([](at::Tensor& p) { p.view({-1})[p.numel() / 2].fill_(0.75); })},
      {"zero_", each([](at::Tensor& p) { p.zero_(); })},
      {"normal_ again", each([](at::Tensor& p) { p.normal_(0, 0.1); })},
      {"detach", each([](at::Tensor& p) { p.detach().mul_(1.5); })},
      // These do not change the version of the parameter.
      {"variable_data", each([](at::Tensor& p) { p.variable_data().mul_(-1.25); })},
      {"variable_data of one slot",
       each([](at::Tensor& p) { p.variable_data().select(0, 0).add_(0.25); })},
      {"variable_data of the last slot",
       each([](at::Tensor& p) { p.variable_data().select(0, p.size(0) - 1).add_(0.25); })},
      {"data_ptr", each([](at::Tensor& p) { p.data_ptr<float>()[p.numel() - 1] += 0.5f; })},
      {"set_data", each([](at::Tensor& p) { p.set_data(p.detach().clone() * 0.5); })},
      {"set_data with other numbers",
       each([](at::Tensor& p) { p.set_data(filled("set", p.sizes(), 0.1).to(at::kFloat)); })},
      {"set_ of the storage",
       each([](at::Tensor& p) { p.set_(filled("storage", p.sizes(), 0.1).to(at::kFloat)); })},
      {"our AdamW",
       [](torch::nn::Module& module) {
         AdamWOptions options;
         options.lr = 0.01;
         AdamW optimizer(module.parameters(), options);
         optimizer.step();
         optimizer.step(/*clip=*/1.0);
       }},
      {"torch::optim::SGD",
       [](torch::nn::Module& module) {
         torch::optim::SGD(module.parameters(), torch::optim::SGDOptions(0.05)).step();
       }},
      {"torch::optim::Adam",
       [](torch::nn::Module& module) {
         torch::optim::Adam(module.parameters(), torch::optim::AdamOptions(0.05)).step();
       }},
      {"to and back",
       [](torch::nn::Module& module) {
         module.to(torch::kDouble);
         for_each(module, [](at::Tensor& p) { p.mul_(1.125); });
         module.to(torch::kFloat);
       }},
  };
}

template <typename Module, typename... Args>
void expect_never_stale(const Args&... args) {
  torch::manual_seed(kSeed);
  Module module(args...);
  for (const auto& [name, change] : writes()) {
    SCOPED_TRACE(name);
    const auto before = results_of(module);
    const auto inferred_before = inferred(module);
    change(*module);
    auto fresh = fresh_copy<Module>(module, args...);
    const auto expected = results_of(fresh);
    EXPECT_FALSE(same_bits(before[0], expected[0])) << "the write changes nothing";
    // Once without gradients, once with, and once more from the packed copies.
    EXPECT_TRUE(same_bits(inferred(module), expected[0])) << "without gradients";
    EXPECT_TRUE(same(results_of(module), expected)) << "with gradients";
    EXPECT_TRUE(same(results_of(module), expected)) << "called again";
    EXPECT_TRUE(same_bits(inferred_before, before[0]));
  }
}

TEST(PackedWeights, OfALayerAreNeverStale) {
  for (const auto& [name, position] : every_method()) {
    SCOPED_TRACE(name);
    expect_never_stale<Attention>(options_of(position));
  }
}

TEST(PackedWeights, OfLayersWithOtherOptionsAreNeverStale) {
  for (const auto& [name, position] : every_position()) {
    if (position.method != Method::translution && position.method != Method::alpha_translution)
      continue;
    SCOPED_TRACE(name);
    expect_never_stale<Attention>(options_of(position));
  }
}

TEST(PackedWeights, OfABlockAreNeverStale) {
  BlockStyle style;
  style.precision = Precision::bf16;
  Position position;
  position.method = Method::alpha_translution;
  expect_never_stale<Block>(options_of(position), int64_t{97}, style);
}

TEST(PackedWeights, AreUpdatedWhenALayerIsLoaded) {
  for (const auto& [name, position] : every_method()) {
    SCOPED_TRACE(name);
    torch::manual_seed(kSeed);
    Attention saved(options_of(position)), loaded(options_of(position));
    const auto expected = results_of(saved);
    EXPECT_FALSE(same_bits(results_of(loaded)[0], expected[0]));
    std::stringstream file;
    torch::save(saved, file);
    torch::load(loaded, file);
    EXPECT_TRUE(same_bits(inferred(loaded), expected[0]));
    EXPECT_TRUE(same(results_of(loaded), expected));
  }
}

// Memory that is freed and allocated again often has the same address.
TEST(PackedWeights, AreNotReusedForAnotherLayerAtTheSameAddress) {
  for (const auto& [name, position] : every_method()) {
    SCOPED_TRACE(name);
    for (int64_t n = 0; n < 5; ++n) {
      torch::manual_seed(kSeed + n);
      Attention layer(options_of(position));
      const auto results = results_of(layer);
      auto fresh = fresh_copy<Attention>(layer, options_of(position));
      EXPECT_TRUE(same(results_of(fresh), results)) << n;
    }
  }
}

TEST(PackedWeights, StayValidForAPendingBackward) {
  torch::manual_seed(kSeed);
  Attention layer(options_of({}));
  const auto first = results_of(layer);
  auto x = input().requires_grad_();
  layer->zero_grad();
  const auto y = layer->forward(x);
  {
    const torch::NoGradGuard no_grad;
    layer->forward(input(0.5));
  }
  y.backward(filled("gradient of the output", y.sizes(), 1).to(at::kFloat));
  EXPECT_TRUE(same_bits(x.grad(), first[1]));
}

}  // namespace
}  // namespace translution::testing
