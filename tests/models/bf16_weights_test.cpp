#include "translution/models/bf16_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/tiny_models.h"
#include "translution/models/cost.h"
#include "translution/models/generate.h"
#include "translution/models/network.h"

namespace translution {
namespace {

using ::testing::HasSubstr;

ModelOptions in_bf16(ModelOptions options) {
  options.precision = Precision::bf16;
  return options;
}

NamedTensors tensors_of(torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& parameter : module.named_parameters())
    tensors[parameter.key()] = parameter.value().detach();
  return tensors;
}

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

TEST(Bf16Weights, AreTheOperandsOfProducts) {
  for (const auto& [name, position] : every_position()) {
    const auto options = in_bf16(tiny_vit(position));
    auto model = build<ViT>(options, torch::kFloat);
    hold_in_bf16(*model, options);
    for (const auto& parameter : model->named_parameters()) {
      const auto& key = parameter.key();
      const auto part = last_part(key);
      const bool added = part == "key_vectors" || part == "value_vectors" || part == "gate" ||
                         part == "position_weight" || key == "position_embedding" ||
                         part == "bias" || key == "cls_token";
      const bool matrix = parameter.value().dim() >= 2 && !added;
      EXPECT_EQ(parameter.value().scalar_type(), matrix ? torch::kBFloat16 : torch::kFloat)
          << name << " " << key;
    }
  }
}

// Products of few rows use the matrix unpacked and sum in another order.
void expect_close(const torch::Tensor& got, const torch::Tensor& expected) {
  EXPECT_LE((got - expected).norm().item<double>(), 5e-3 * expected.norm().item<double>());
}

TEST(Bf16Weights, GiveTheResultsOfFloat32Weights) {
  const torch::NoGradGuard no_grad;
  for (const auto& [name, position] : every_position()) {
    const auto vit = in_bf16(tiny_vit(position)), gpt = in_bf16(tiny_gpt(position));
    auto images = build<ViT>(vit, torch::kFloat);
    auto text = build<GPT>(gpt, torch::kFloat);
    images->eval(), text->eval();
    const auto classes = images(random_images(3, torch::kFloat)),
               logits = text(random_tokens(2, 7));
    hold_in_bf16(*images, vit);
    hold_in_bf16(*text, gpt);
    SCOPED_TRACE(name);
    expect_close(images(random_images(3, torch::kFloat)), classes);
    expect_close(text(random_tokens(2, 7)), logits);
    EXPECT_EQ(classes.scalar_type(), torch::kFloat) << name;
  }
}

TEST(Bf16Weights, GenerateText) {
  const auto options = in_bf16(tiny_gpt());
  auto model = build<GPT>(options, torch::kFloat);
  hold_in_bf16(*model, options);
  Generator cached(model, {}, /*cache=*/true), uncached(model, {}, /*cache=*/false);
  for (auto* generator : {&cached, &uncached}) generator->feed({3, 1, 4});
  const auto difference = (cached.logits() - uncached.logits()).abs().max();
  EXPECT_LE(difference.item<double>(), 1e-2 * uncached.logits().abs().max().item<double>());
}

TEST(Bf16Weights, AreAdoptedWithoutACopy) {
  auto options = in_bf16(tiny_vit());
  auto model = build<ViT>(options, torch::kFloat);
  auto tensors = tensors_of(*model);
  const auto convert = hold_in_bf16(options);
  for (auto& [name, tensor] : tensors) tensor = convert(name, tensor);
  options.init = Init::none;
  Network network(options);
  adopt_tensors(network.module(), tensors);
  for (const auto& parameter : network.module().named_parameters())
    EXPECT_EQ(parameter.value().data_ptr(), tensors.at(parameter.key()).data_ptr());
  const auto images = random_images(2, torch::kFloat);
  expect_close(network.forward(images), model(images));
}

TEST(Bf16Weights, OfOtherModelsAreRefused) {
  Network network(tiny_vit());
  const auto refusal = [&](const char* name, const torch::Tensor& tensor) {
    auto tensors = tensors_of(network.module());
    if (tensor.defined())
      tensors[name] = tensor;
    else
      tensors.erase(name);
    try {
      adopt_tensors(network.module(), tensors);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refusal("head.bias", {}), HasSubstr("load: head.bias [5] is missing"));
  EXPECT_THAT(refusal("head.bias", torch::zeros({6})),
              HasSubstr("expected floating-point numbers [5], got Float [6]"));
  EXPECT_THAT(refusal("head.bias", torch::zeros({5}, torch::kLong)), HasSubstr("got Long [5]"));
  EXPECT_THAT(refusal("head.bia", torch::zeros({5})),
              HasSubstr("the model has no parameter 'head.bia'; did you mean 'head.bias'?"));
}

TEST(Bf16Weights, AreCountedInTheModelCost) {
  auto options = ModelOptions::named("vit-a/12");
  options.image_size = {84, 84};
  const auto single = model_cost(options, 8);
  const auto half = model_cost(in_bf16(options), 8);
  double matrices = 0;
  for (const auto& spec : model_parameters(options))
    if (spec.is_multiplied()) matrices += static_cast<double>(spec.count());
  EXPECT_EQ(single.packed_bytes, 0);
  EXPECT_GE(half.packed_bytes, 4 * matrices);
  EXPECT_LE(half.packed_bytes, 4.1 * matrices) << "padded to tiles";
  EXPECT_EQ(single.evaluation_bytes - half.evaluation_bytes, 2 * matrices);
  EXPECT_EQ(half.kept_bytes, single.kept_bytes / 2);
  EXPECT_EQ(half.weight_bytes, single.weight_bytes);
}

TEST(Bf16Weights, TakeFloat32Images) {
  const auto options = in_bf16(tiny_vit());
  auto model = build<ViT>(options, torch::kFloat);
  hold_in_bf16(*model, options);
  EXPECT_NO_THROW(model(random_images(1, torch::kFloat)));
  EXPECT_THROW(model(random_images(1, torch::kDouble)), c10::Error);
}

}  // namespace
}  // namespace translution
