#include "translution/nn/score_parts.h"

#include <gtest/gtest.h>

#include "tests/nn/positions.h"

namespace translution {
namespace {

Attention tiny_alpha(const Position& position, bool bias) {
  torch::manual_seed(kSeed);
  auto options = AttentionOptions(6).heads(3).dim_head(4).grid({2, 3}).cls(true).position(position);
  Attention layer(options.qkv_bias(bias));
  torch::NoGradGuard no_grad;
  for (auto& parameter : layer->parameters()) parameter.normal_();
  return layer;
}

void expect_scores_of_the_map(Attention layer, const std::string& name) {
  torch::NoGradGuard no_grad;
  const auto x = torch::randn({1, 7, 6});
  const auto map = layer->forward_with_map(x).second[0];  // [3,7,7]
  for (const int64_t query : {0, 4}) {
    const auto parts = score_parts(*layer, x, query);
    ASSERT_TRUE(parts.shared.defined() || parts.relative.defined()) << name;
    auto scores = torch::zeros({3, 7});
    for (const auto& part : {parts.shared, parts.relative})
      if (part.defined()) scores += part;
    EXPECT_TRUE(torch::allclose(scores.softmax(1), map.select(1, query), 1e-4, 1e-5))
        << name << ", query " << query;
  }
}

TEST(ScoreParts, AddUpToTheScoresOfEveryAlpha) {
  for (const auto& [name, position] : every_position()) {
    if (position.method != Method::alpha_translution) continue;
    expect_scores_of_the_map(tiny_alpha(position, false), name);
    if (position.takes_qkv_bias()) expect_scores_of_the_map(tiny_alpha(position, true), name);
  }
}

TEST(ScoreParts, AreUndefinedForOtherMethods) {
  Position position;
  position.method = Method::self_attention;
  const auto parts = score_parts(*tiny_alpha(position, false), torch::randn({1, 7, 6}), 0);
  EXPECT_FALSE(parts.shared.defined() || parts.relative.defined());
}

TEST(ScoreParts, AQueryOutsideIsRefused) {
  Position position;
  position.method = Method::alpha_translution;
  EXPECT_THROW(score_parts(*tiny_alpha(position, false), torch::randn({1, 7, 6}), 7), c10::Error);
}

}  // namespace
}  // namespace translution
