// Key padding and smaller grids in calls of layers and models.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/tiny_models.h"
#include "translution/nn/regrid.h"

namespace translution {
namespace {

// Three heads of 8 channels, so that rotary can turn two axes.
AttentionOptions on_grid(const std::vector<int64_t>& grid, const Position& position, bool cls,
                         bool causal) {
  return AttentionOptions(6).heads(3).dim_head(8).grid(grid).cls(cls).causal(causal).position(
      position);
}

NamedTensors tensors_of(const Attention& layer) {
  NamedTensors tensors;
  for (const auto& parameter : layer->named_parameters())
    tensors[parameter.key()] = parameter.value().detach();
  return tensors;
}

AttendOptions on(const std::vector<int64_t>& grid) {
  AttendOptions call;
  call.grid = grid;
  return call;
}

AttendOptions padded(const at::Tensor& mask) {
  AttendOptions call;
  call.key_padding_mask = mask;
  return call;
}

// Sample 0 has padding at the end, sample 1 in the middle.
at::Tensor padding_of(int64_t tokens) {
  auto mask = torch::ones({2, tokens}, torch::kBool);
  mask[0].narrow(0, tokens - 2, 2).fill_(false);
  mask[1][1].fill_(false);
  return mask;
}

TEST(SmallerGrid, IsALayerOfThatGridWithTheWeightsOfItsOffsets) {
  for (const auto& [name, position] : every_position()) {
    if (position.encoding == Encoding::absolute) continue;  // has no rows per offset to move
    for (const bool cls : {false, true})
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(name + (cls ? " cls" : "") + (causal ? " causal" : ""));
        auto large = build_layer(on_grid({4, 5}, position, cls, causal));
        auto small = build_layer(on_grid({2, 3}, position, cls, causal));
        load_tensors(*small, tensors_of(large), {4, 5});
        const auto x = random_input(6 + cls);
        const auto [expected, expected_map] = small->forward_with_map(x);
        const auto [out, map] = large->forward_with_map(x, on({2, 3}));
        EXPECT_TRUE(agree(out, expected));
        EXPECT_TRUE(agree(map, expected_map));
        auto some = on({2, 3});
        some.rows = torch::tensor({4, 0}, torch::kLong);
        EXPECT_TRUE(agree(large->forward(x, some), expected.index_select(1, some.rows)));
        some.rows.reset();
        some.key_padding_mask = padding_of(6 + cls);
        EXPECT_TRUE(
            agree(large->forward(x, some), small->forward(x, padded(some.key_padding_mask))));
      }
  }
}

TEST(SmallerGrid, MayBeTheLayersOwnOrOneToken) {
  for (const auto& [name, position] : every_position()) {
    SCOPED_TRACE(name);
    auto layer = build_layer(on_grid({2, 3}, position, true, false));
    const auto x = random_input(7);
    EXPECT_TRUE(agree(layer->forward(x, on({2, 3})), layer->forward(x)));
    EXPECT_EQ(layer->forward(x.narrow(1, 0, 2), on({1, 1})).sizes(), (at::IntArrayRef{2, 2, 6}));
    EXPECT_EQ(layer->forward(x.narrow(1, 0, 1), on({0, 3})).sizes(), (at::IntArrayRef{2, 1, 6}));
  }
}

TEST(SmallerGrid, OfATextIsItsBeginning) {
  for (const auto& [name, position] : every_position()) {
    SCOPED_TRACE(name);
    auto layer = build_layer(on_grid({7}, position, false, true));
    const auto x = random_input(5);
    EXPECT_TRUE(same_bits(layer->forward(x, on({5})), layer->forward(x)));
  }
}

TEST(SmallerGrid, HasGradientsOfTheWeightsThatItReads) {
  auto layer = build_layer(on_grid({3, 3}, {}, false, false));
  layer->forward(random_input(4), on({2, 2})).sum().backward();
  const auto used = layer->named_parameters()["value"].grad().abs().amax({1, 2}) > 0;
  EXPECT_EQ(used.sum().item<int64_t>(), 9);  // offsets from -1 to 1 on both axes, of 25
}

TEST(KeyPadding, DoesNotReachOtherTokensOfALayer) {
  for (const auto& [name, position] : every_position()) {
    SCOPED_TRACE(name);
    auto layer = build_layer(on_grid({2, 3}, position, true, false));
    const auto x = random_input(7), mask = padding_of(7);
    const auto wild = x.masked_fill(mask.logical_not().unsqueeze(-1), std::nan(""));
    const auto [out, map] = layer->forward_with_map(x, padded(mask));
    EXPECT_TRUE(same_bits(layer->forward(wild, padded(mask)).index({mask}), out.index({mask})));
    EXPECT_TRUE(same_bits(layer->forward(x, padded(mask)), out));
    EXPECT_FALSE(agree(layer->forward(x), out));
    const auto closed = mask.logical_not().unsqueeze(1).unsqueeze(1).expand_as(map);
    EXPECT_EQ(map.masked_select(closed).abs().max().item<double>(), 0);
  }
}

TEST(KeyPadding, OfAllKeysGivesTheBiasOfTheOutput) {
  for (const auto& [name, position] : every_position()) {
    SCOPED_TRACE(name);
    auto layer = build_layer(on_grid({2, 3}, position, true, false));
    auto mask = torch::ones({2, 7}, torch::kBool);
    mask[1].fill_(false);
    const auto out = layer->forward(random_input(7), padded(mask));
    EXPECT_TRUE(same_bits(out[1], layer->out->bias.expand({7, 6})));
    EXPECT_FALSE(agree(out[0], out[1]));
  }
}

// The padded texts of a batch give the logits that they give alone.
TEST(KeyPadding, LetsAModelTakeTextsOfDifferentLengths) {
  for (const auto& [name, position] : every_method()) {
    SCOPED_TRACE(name);
    auto model = build<GPT>(tiny_gpt(position));
    model->eval();
    const auto tokens = random_tokens(2, 7);
    auto call = padded(torch::ones({2, 7}, torch::kBool));
    call.key_padding_mask[1].narrow(0, 4, 3).fill_(false);
    const auto logits = model->forward(tokens, call);
    EXPECT_TRUE(agree(logits[0], model->forward(tokens.narrow(0, 0, 1))[0]));
    const auto alone = model->forward(tokens.narrow(0, 1, 1).narrow(1, 0, 4))[0];
    EXPECT_TRUE(agree(logits[1].narrow(0, 0, 4), alone));
    call.rows = torch::tensor({3}, torch::kLong);
    EXPECT_TRUE(agree(model->forward(tokens, call)[1], alone.narrow(0, 3, 1)));
  }
}

// Padding in front of a text: later blocks see the mask as well.
TEST(KeyPadding, ReachesEveryBlockOfAModel) {
  auto model = build<GPT>(tiny_gpt());
  model->eval();
  const auto tokens = random_tokens(1, 7);
  auto other = tokens.clone();
  other.narrow(1, 0, 2).fill_(3);
  auto mask = torch::ones({1, 7}, torch::kBool);
  mask.narrow(1, 0, 2).fill_(false);
  EXPECT_TRUE(agree(model->forward(tokens, padded(mask)).narrow(1, 2, 5),
                    model->forward(other, padded(mask)).narrow(1, 2, 5)));
  EXPECT_FALSE(
      agree(model->forward(tokens).narrow(1, 2, 5), model->forward(other).narrow(1, 2, 5)));
}

TEST(SmallerGrid, PassesThroughABackbone) {
  auto model = build<ViT>(tiny_vit());  // 3x2 patches and a class token
  model->eval();
  torch::manual_seed(kSeed);
  const auto x = torch::randn({2, 5, 12}, torch::kDouble);
  auto expected = x;
  for (size_t layer = 0; layer < 2; ++layer)
    expected = model->backbone->blocks->at<BlockImpl>(layer).forward(expected, on({2, 2}));
  EXPECT_TRUE(agree(model->backbone(x, on({2, 2})), model->backbone->norm(expected)));
}

}  // namespace
}  // namespace translution
