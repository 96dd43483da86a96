// With bf16, every product of a layer or model rounds its weights, forward and backward: weights
// that are rounded beforehand give the same bits. Other operations do not round.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/models/tiny_models.h"
#include "tests/nn/positions.h"
#include "tests/support/filled.h"
#include "translution/models/generate.h"
#include "translution/ops/runtime.h"

namespace translution::testing {
namespace {

using ::testing::IsEmpty;
using Tensors = std::map<std::string, at::Tensor>;

// True if the parameter is an operand of a matrix product. Other parameters are added or looked up.
bool is_multiplied(const std::string& name, const at::Tensor& parameter) {
  if (parameter.dim() < 2) return false;
  for (const char* end : {"vectors", "embedding", "embedding.weight", "position_weight",
                          "attention.bias", "class_token"})
    if (ends_with(name, end)) return false;
  return name != "bias";
}

void round_products(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters())
    if (is_multiplied(item.key(), item.value()))
      item.value().copy_(item.value().to(torch::kBFloat16));
}

void round_the_rest(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters())
    if (!is_multiplied(item.key(), item.value()))
      item.value().copy_(item.value().to(torch::kBFloat16));
}

// The output and the gradient of every parameter.
template <typename Module>
Tensors results_of(Module& module, const at::Tensor& input) {
  module->zero_grad();
  const auto y = module->forward(input);
  y.backward(filled("gradient of the output", y.sizes(), 1).to(y.scalar_type()));
  Tensors results{{"out", y.detach()}};
  for (const auto& item : module->named_parameters())
    if (item.value().grad().defined()) results["d " + item.key()] = item.value().grad().clone();
  return results;
}

std::vector<std::string> differing(const Tensors& a, const Tensors& b) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : a)
    if (!same_bits(tensor, b.at(name))) names.push_back(name);
  return names;
}

template <typename Module, typename Options>
void expect_rounded_products(const Options& options, const at::Tensor& input) {
  Module module(options);
  fill_parameters(*module);
  const auto before = results_of(module, input);
  round_products(*module);
  EXPECT_THAT(differing(results_of(module, input), before), IsEmpty());
  round_the_rest(*module);
  EXPECT_FALSE(same_bits(module->forward(input), before.at("out")))
      << "biases, vectors and norms are rounded";
}

AttentionOptions layer_options(const Position& position) {
  return AttentionOptions(26)
      .heads(3)
      .dim_head(12)
      .grid({2, 3})
      .cls(true)
      .position(position)
      .precision(Precision::bf16);
}

TEST(Bf16Layer, RoundsTheWeightsOfEveryProduct) {
  for (const auto& [name, position] : every_position()) {
    SCOPED_TRACE(name);
    expect_rounded_products<Attention>(layer_options(position),
                                       filled("x", {3, 7, 26}, 1.7).to(torch::kFloat));
  }
}

TEST(Bf16Layer, RoundsNothingInFloat32) {
  for (const auto& [name, position] : every_method()) {
    SCOPED_TRACE(name);
    Attention layer(layer_options(position).precision(Precision::float32));
    fill_parameters(*layer);
    const auto x = filled("x", {3, 7, 26}, 1.7).to(torch::kFloat);
    const auto before = layer->forward(x);
    round_products(*layer);
    EXPECT_FALSE(same_bits(layer->forward(x), before));
  }
}

TEST(Bf16Models, RoundTheWeightsOfEveryProduct) {
  for (const auto& [name, position] : every_method())
    for (const Pooling pooling : {Pooling::cls, Pooling::mean}) {
      SCOPED_TRACE(name);
      auto vit = tiny_vit(position, pooling);
      vit.precision = Precision::bf16;
      expect_rounded_products<ViT>(vit, random_images(3, torch::kFloat));
      auto gpt = tiny_gpt(position);
      gpt.precision = Precision::bf16;
      expect_rounded_products<GPT>(gpt, random_tokens(3, gpt.length));
    }
}

// The logits after every token of a text that is longer than the model's context.
at::Tensor generated_logits(GPT model) {
  Generator generator(model);
  std::vector<at::Tensor> logits;
  for (int64_t position = 0; position < 10; ++position) {
    generator.feed({(5 * position + 3) % 11});
    logits.push_back(generator.logits());
  }
  return at::stack(logits);
}

TEST(Bf16Models, RoundTheWeightsOfEveryProductInGeneration) {
  for (const auto& [name, position] : every_method()) {
    if (position.method == Method::translution && !runtime().fused())
      continue;  // the portable path has no lookahead
    SCOPED_TRACE(name);
    auto options = tiny_gpt(position);
    options.precision = Precision::bf16;
    GPT model(options);
    fill_parameters(*model);
    const auto before = generated_logits(model);
    round_products(*model);
    EXPECT_TRUE(same_bits(generated_logits(model), before));
  }
}

// The weights are converted to bfloat16, the input is not.
TEST(Bf16Layer, WithConvertedWeightsGivesTheSameNumbers) {
  const torch::NoGradGuard no_grad;
  for (const auto& [name, position] : every_position()) {
    SCOPED_TRACE(name);
    Attention layer(layer_options(position));
    fill_parameters(*layer);
    round_products(*layer);
    round_the_rest(*layer);
    const auto x = filled("x", {3, 7, 26}, 1.7).to(torch::kFloat);
    const auto wide = layer->forward(x);
    layer->to(torch::kBFloat16);
    const auto narrow = layer->forward(x);
    EXPECT_EQ(narrow.scalar_type(), torch::kFloat);
    // Products of few rows sum in another order, which may change the rounding of an encoding.
    EXPECT_LE((narrow - wide).norm().item<double>(), 1e-3 * wide.norm().item<double>());
  }
}

}  // namespace
}  // namespace translution::testing
