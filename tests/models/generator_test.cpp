// A given generator is used for weights and dropout, and LibTorch's default generator is not.

#include "translution/nn/generator.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "tests/models/tiny_models.h"
#include "translution/models/network.h"
#include "translution/nn/linear.h"

namespace translution {
namespace {

at::Tensor default_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

void expect_same_parameters(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto ours = a.named_parameters(), theirs = b.named_parameters();
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t n = 0; n < ours.size(); ++n) {
    EXPECT_EQ(ours[n].key(), theirs[n].key());
    EXPECT_TRUE(torch::equal(ours[n].value(), theirs[n].value())) << ours[n].key();
  }
}

TEST(SeededGenerator, InitialisesLinearLayersAsLibTorch) {
  for (const int64_t in : {1, 2, 3, 7, 64, 75, 192, 768})
    for (const bool bias : {true, false}) {
      torch::manual_seed(kSeed);
      const torch::nn::Linear theirs(torch::nn::LinearOptions(in, 13).bias(bias));
      const auto ours = make_linear(in, 13, Init::scaled, seeded_generator(kSeed), bias);
      expect_same_parameters(*ours, *theirs);
    }
}

TEST(SeededGenerator, DrawsTheNumbersOfTheDefaultGeneratorAndLeavesItUnchanged) {
  for (const auto& [name, position] : every_method())
    for (auto options : {tiny_vit(position), tiny_gpt(position)}) {
      SCOPED_TRACE(name);
      options.dropout = 0.3;
      torch::manual_seed(kSeed);
      Network expected(options);
      const auto input =
          options.family == Family::vit ? random_images(3, torch::kFloat) : random_tokens(3, 7);
      torch::manual_seed(kSeed + 5);
      const auto expected_logits = expected.forward(input);

      const auto before = default_state();
      Network network(options, seeded_generator(kSeed));
      const auto logits = network.forward(input, seeded_generator(kSeed + 5));
      logits.sum().backward();
      EXPECT_TRUE(torch::equal(default_state(), before));
      expect_same_parameters(network.module(), expected.module());
      EXPECT_TRUE(torch::equal(logits, expected_logits));
      EXPECT_FALSE(torch::equal(network.forward(input, seeded_generator(1)), logits));
    }
}

TEST(SeededGenerator, IsNotUsedByAModelWithoutInitialisation) {
  for (auto options : {tiny_vit(), tiny_gpt()}) {
    options.init = Init::none;
    const auto before = default_state();
    const Network network(options);
    EXPECT_TRUE(torch::equal(default_state(), before));
  }
}

}  // namespace
}  // namespace translution
