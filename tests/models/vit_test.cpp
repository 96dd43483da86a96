#include "translution/models/vit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/tiny_models.h"

namespace translution {
namespace {

using Shape = std::vector<int64_t>;
constexpr Pooling kBoth[] = {Pooling::cls, Pooling::mean};

TEST(ViT, GivesOneLogitPerClassForEveryMethodAndPooling) {
  for (const auto& [name, position] : every_position()) {
    for (const Pooling pooling : kBoth) {
      auto model = build<ViT>(tiny_vit(position, pooling), torch::kFloat);
      const auto logits = model(random_images(3, torch::kFloat));
      EXPECT_EQ(logits.sizes(), (Shape{3, 5})) << name;
      EXPECT_EQ(logits.scalar_type(), torch::kFloat) << name;
      EXPECT_TRUE(logits.isfinite().all().item<bool>()) << name;
    }
  }
}

TEST(ViT, TakesAnEmptyBatch) {
  for (const auto& [name, position] : every_method())
    EXPECT_EQ(build<ViT>(tiny_vit(position))(random_images(0)).sizes(), (Shape{0, 5})) << name;
}

TEST(ViT, ComputesOneRowOfTheLastBlockWithTheSameLogits) {
  for (const auto& [name, position] : every_position()) {
    auto model = build<ViT>(tiny_vit(position));
    const auto images = random_images(3);
    auto x = model->embed(images);
    for (size_t layer = 0; layer < 2; ++layer)
      x = model->backbone->blocks->at<BlockImpl>(layer).forward(x);
    EXPECT_EQ(x.sizes(), (Shape{3, 7, 12})) << name;
    EXPECT_TRUE(agree(model(images), model->head(model->backbone->norm(x).select(1, 0)))) << name;
  }
}

TEST(Backbone, CanBeStoppedBetweenBlocksForwardAndBackward) {
  struct Stop : std::exception {};
  auto model = build<ViT>(tiny_vit());
  int calls = 0, last = -1;
  model->backbone->between_blocks = [&] {
    if (++calls == last) throw Stop();
  };
  const auto step = [&] { model->forward(random_images(3)).sum().backward(); };
  step();
  const int all = calls;
  EXPECT_EQ(all, 6) << "around two blocks, in forward and backward";
  for (last = 1; last <= all; ++last) {
    calls = 0;
    EXPECT_THROW(step(), Stop) << last;
    EXPECT_EQ(calls, last);
  }
  model->backbone->between_blocks = nullptr;
  calls = 0;
  step();
  EXPECT_EQ(calls, 0);
}

TEST(ViT, AveragesThePatchesWithoutAClassToken) {
  auto model = build<ViT>(tiny_vit({}, Pooling::mean));
  const auto images = random_images(3);
  const auto tokens = model->backbone(model->embed(images));
  EXPECT_EQ(tokens.sizes(), (Shape{3, 6, 12}));
  EXPECT_TRUE(agree(model(images), model->head(tokens.mean(1))));
}

TEST(ViT, CutsPatchesRowByRow) {
  auto model = build<ViT>(tiny_vit());
  const auto images = random_images(2);
  const auto tokens = model->embed(images);
  for (int64_t patch = 0; patch < 6; ++patch) {
    const auto pixels = images.narrow(2, patch / 2 * 4, 4).narrow(3, patch % 2 * 4, 4);
    const auto flat = pixels.permute({0, 2, 3, 1}).reshape({2, 32});
    const auto token = model->embed_norm(model->patch_embed(model->patch_norm(flat)));
    EXPECT_TRUE(agree(tokens.select(1, 1 + patch), token)) << patch;
  }
  EXPECT_TRUE(same_bits(tokens.select(1, 0), model->cls_token.expand({2, 12})));
}

TEST(ViT, AddsAPositionEmbeddingIfTheMethodOrTheOptionsSaySo) {
  Position plain;
  plain.method = Method::self_attention;
  EXPECT_EQ(build<ViT>(tiny_vit(plain))->position_embedding.sizes(), (Shape{7, 12}));
  auto options = tiny_vit(plain);
  options.input_embedding = false;
  EXPECT_FALSE(build<ViT>(options)->position_embedding.defined());
  auto embedded = tiny_vit({}, Pooling::mean);
  embedded.input_embedding = true;
  auto model = build<ViT>(embedded);
  const auto images = random_images(2);
  const auto with = model->embed(images);
  torch::NoGradGuard no_grad;
  const auto added = model->position_embedding.clone();
  EXPECT_EQ(added.sizes(), (Shape{6, 12}));
  model->position_embedding.zero_();
  EXPECT_TRUE(agree(with - model->embed(images), added.expand({2, 6, 12})));
}

TEST(ViT, HasOneAttentionMapPerBlockWhoseRowsSumToOne) {
  for (const auto& [name, position] : every_position()) {
    for (const Pooling pooling : kBoth) {
      auto model = build<ViT>(tiny_vit(position, pooling));
      const int64_t N = model->options.tokens();
      const auto maps = model->attention_maps(random_images(3));
      ASSERT_EQ(maps.size(), 2u) << name;
      for (const auto& map : maps) {
        EXPECT_EQ(map.sizes(), (Shape{3, 2, N, N})) << name;
        EXPECT_TRUE(is_attention(map, position.method == Method::convolution)) << name;
      }
    }
  }
}

TEST(ViT, MapsOfAGateRangeFromContentOnlyToPositionOnly) {
  Position gated, plain;
  gated.method = Method::gated_position;
  plain.method = Method::self_attention_no_pos;
  auto model = build<ViT>(tiny_vit(gated));
  auto content = build<ViT>(tiny_vit(plain));
  torch::NoGradGuard no_grad;
  const auto from = model->named_parameters();
  for (auto& parameter : content->named_parameters())
    parameter.value().copy_(from[parameter.key()]);
  const auto images = random_images(3);
  const auto set_gates = [&](double value) {
    for (auto& parameter : model->named_parameters())
      if (parameter.key().find("gate") != std::string::npos) parameter.value().fill_(value);
  };
  set_gates(-1000);
  const auto closed = model->attention_maps(images), plain_maps = content->attention_maps(images);
  for (size_t layer = 0; layer < 2; ++layer)
    EXPECT_TRUE(agree(closed[layer], plain_maps[layer])) << layer;
  set_gates(1000);
  const auto open = model->attention_maps(images)[0], other = model->attention_maps(-images)[0];
  EXPECT_TRUE(agree(open, other)) << "positional attention does not depend on the input";
  EXPECT_TRUE(agree(open[0], open[1]));
}

TEST(ViT, HybridLayersUseTheMethodAndTheOthersTheRest) {
  Position rotary;
  rotary.method = Method::rotary;
  for (const Method rest : {Method::self_attention_no_pos, Method::rotary}) {
    for (int64_t layers = 0; layers <= 2; ++layers) {
      auto options = tiny_vit();
      options.hybrid_layers = layers;
      options.rest = rest;
      auto model = build<ViT>(options);
      for (int64_t layer = 0; layer < 2; ++layer) {
        const auto& attention = model->backbone->blocks->at<BlockImpl>(layer).attention;
        EXPECT_EQ(attention->options.position().method,
                  layer < layers ? Method::translution : rest);
        EXPECT_EQ(attention->named_parameters()["query"].dim(), layer < layers ? 3 : 2);
      }
      EXPECT_EQ(model(random_images(2)).sizes(), (Shape{2, 5}));
      for (const auto& map : model->attention_maps(random_images(2)))
        EXPECT_TRUE(is_attention(map, false));
    }
  }
}

TEST(ViT, InDoubleAgreesWithFloat) {
  for (const auto& [name, position] : every_position()) {
    auto in_float = build<ViT>(tiny_vit(position), torch::kFloat);
    auto in_double = build<ViT>(tiny_vit(position), torch::kDouble);
    const auto logits = in_double(random_images(3));
    EXPECT_EQ(logits.scalar_type(), torch::kDouble) << name;
    EXPECT_TRUE(at::allclose(in_float(random_images(3, torch::kFloat)).to(torch::kDouble), logits,
                             1e-4, 1e-4))
        << name;
  }
}

TEST(ViT, DropoutChangesTheLogitsInTrainingOnly) {
  for (const auto& [name, position] : every_method()) {
    auto options = tiny_vit(position);
    options.dropout = 0.3;
    auto model = build<ViT>(options);
    auto without = build<ViT>(tiny_vit(position));
    const auto images = random_images(3);
    model->train();
    EXPECT_FALSE(agree(model(images), model(images))) << name;
    model->eval();
    EXPECT_TRUE(same_bits(model(images), model(images))) << name;
    EXPECT_TRUE(same_bits(model(images), without(images))) << name;
  }
}

TEST(ViT, LearnsATinyProblemWithEveryMethod) {
  for (const auto& [name, position] : every_position()) {
    auto model = build<ViT>(tiny_vit(position), torch::kFloat);
    const auto images = random_images(8, torch::kFloat);
    const auto [first, last] = descend(model, images, torch::randint(5, {8}, torch::kLong));
    EXPECT_LT(last, 0.8 * first) << name;
    for (const auto& parameter : model->named_parameters())
      EXPECT_TRUE(parameter.value().grad().defined()) << name << ": " << parameter.key();
  }
}

}  // namespace
}  // namespace translution
