#include "translution/models/gpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/tiny_models.h"

namespace translution {
namespace {

using Shape = std::vector<int64_t>;

TEST(GPT, GivesLogitsForEveryTokenAndEveryMethod) {
  for (const auto& [name, position] : every_position()) {
    auto model = build<GPT>(tiny_gpt(position), torch::kFloat);
    for (const int64_t n : {1, 4, 7}) {
      const auto logits = model(random_tokens(3, n));
      EXPECT_EQ(logits.sizes(), (Shape{3, n, 11})) << name;
      EXPECT_TRUE(logits.isfinite().all().item<bool>()) << name;
    }
  }
}

TEST(GPT, LogitsOfAPrefixDoNotDependOnLaterTokens) {
  for (const auto& [name, position] : every_position()) {
    auto model = build<GPT>(tiny_gpt(position));
    const auto tokens = random_tokens(3, 7);
    const auto logits = model(tokens);
    for (int64_t n = 1; n < 7; ++n)
      EXPECT_TRUE(agree(model(tokens.narrow(1, 0, n)), logits.narrow(1, 0, n)))
          << name << ", " << n;
    EXPECT_TRUE(same_bits(model(tokens), logits)) << name << ": again at full length";
  }
}

TEST(GPT, ComputesOnlyTheGivenRows) {
  const auto rows = torch::tensor({5, 0, 5}, torch::kLong);
  for (const auto& [name, position] : every_position()) {
    auto model = build<GPT>(tiny_gpt(position));
    const auto tokens = random_tokens(3, 6);
    EXPECT_TRUE(agree(model(tokens, rows), model(tokens).index_select(1, rows))) << name;
  }
}

TEST(GPT, AppliesEmbeddingBlocksTwoNormsAndHead) {
  auto model = build<GPT>(tiny_gpt());
  const auto tokens = random_tokens(3, 7);
  auto x = model->token_embedding(tokens);
  EXPECT_TRUE(same_bits(model->embed(tokens), x));
  for (size_t layer = 0; layer < 2; ++layer)
    x = model->backbone->blocks->at<BlockImpl>(layer).forward(x);
  EXPECT_TRUE(agree(model(tokens), model->head(model->head_norm(model->backbone->norm(x)))));
}

TEST(GPT, AddsThePositionEmbeddingOfAShorterInput) {
  Position plain;
  plain.method = Method::self_attention;
  auto model = build<GPT>(tiny_gpt(plain));
  EXPECT_EQ(model->position_embedding.sizes(), (Shape{7, 12}));
  const auto tokens = random_tokens(2, 4);
  EXPECT_TRUE(same_bits(model->embed(tokens), model->token_embedding(tokens) +
                                                  model->position_embedding.narrow(0, 0, 4)));
}

TEST(GPT, AttendsToNoLaterToken) {
  for (const auto& [name, position] : every_position()) {
    auto model = build<GPT>(tiny_gpt(position));
    for (const int64_t n : {5, 7}) {
      const auto maps = model->attention_maps(random_tokens(3, n));
      ASSERT_EQ(maps.size(), 2u) << name;
      for (const auto& map : maps) {
        EXPECT_EQ(map.sizes(), (Shape{3, 2, n, n})) << name;
        EXPECT_TRUE(is_attention(map, position.method == Method::convolution)) << name;
        EXPECT_EQ(map.triu(1).count_nonzero().item<int64_t>(), 0) << name;
      }
    }
  }
}

TEST(GPT, TakesHybridLayers) {
  auto options = tiny_gpt();
  options.hybrid_layers = 1;
  options.rest = Method::rotary;
  auto model = build<GPT>(options);
  const auto tokens = random_tokens(3, 7);
  EXPECT_TRUE(agree(model(tokens.narrow(1, 0, 4)), model(tokens).narrow(1, 0, 4)));
  EXPECT_EQ(model->backbone->blocks->at<BlockImpl>(1).attention->offsets(), nullptr);
}

TEST(GPT, DropoutChangesTheLogitsInTrainingOnly) {
  for (const auto& [name, position] : every_method()) {
    auto options = tiny_gpt(position);
    options.dropout = 0.3;
    auto model = build<GPT>(options);
    const auto tokens = random_tokens(3, 7);
    model->train();
    EXPECT_FALSE(agree(model(tokens), model(tokens))) << name;
    model->eval();
    EXPECT_TRUE(same_bits(model(tokens), build<GPT>(tiny_gpt(position))(tokens))) << name;
  }
}

TEST(GPT, LearnsATinyProblemWithEveryMethod) {
  for (const auto& [name, position] : every_position()) {
    auto model = build<GPT>(tiny_gpt(position), torch::kFloat);
    const auto tokens = random_tokens(6, 8);
    const auto [first, last] =
        descend(model, tokens.narrow(1, 0, 7).contiguous(), tokens.narrow(1, 1, 7));
    EXPECT_LT(last, 0.95 * first) << name;
  }
}

}  // namespace
}  // namespace translution
