#include "translution/core/position.h"

#include <gtest/gtest.h>

namespace translution {
namespace {

Position with(Method method) {
  Position position;
  position.method = method;
  return position;
}

TEST(Position, UsesOffsetsExceptInPlainMethods) {
  for (const auto& entry : kMethods) {
    const bool plain = entry.value == Method::self_attention_no_pos ||
                       entry.value == Method::self_attention || entry.value == Method::rotary;
    EXPECT_EQ(with(entry.value).uses_offsets(), !plain) << entry.name;
  }
}

TEST(Position, WithoutRelativeRolesOrWidthUsesNoOffsets) {
  auto position = with(Method::translution);
  position.roles = Roles::parse("none");
  EXPECT_FALSE(position.uses_offsets());
  position.method = Method::alpha_translution;
  EXPECT_FALSE(position.uses_offsets());
  position.roles = Roles();
  position.relative_dim = 0;
  EXPECT_FALSE(position.uses_offsets());
}

TEST(Position, RotatesByMethodOrByOption) {
  EXPECT_TRUE(with(Method::rotary).rotates());
  auto position = with(Method::relative_bias);
  EXPECT_FALSE(position.rotates());
  position.rotary = true;
  EXPECT_TRUE(position.rotates());
}

TEST(Position, OnlySelfAttentionEmbedsItsInputByDefault) {
  for (const auto& entry : kMethods)
    EXPECT_EQ(with(entry.value).embeds_input(), entry.value == Method::self_attention)
        << entry.name;
}

TEST(Position, PassesItsOptionsToTheOffsetTable) {
  auto position = with(Method::translution);
  position.sharing = Sharing::logarithmic;
  position.radius = 3;
  const auto options = position.offsets({4, 5}, /*cls=*/true, /*causal=*/false);
  EXPECT_EQ(options.grid, (std::vector<int64_t>{4, 5}));
  EXPECT_TRUE(options.cls);
  EXPECT_FALSE(options.causal);
  EXPECT_EQ(options.encoding, Encoding::relative);
  EXPECT_EQ(options.sharing, Sharing::logarithmic);
  EXPECT_EQ(options.radius, 3);
}

TEST(Position, AConvolutionIsAWindowWithTheRadiusOfItsKernel) {
  auto position = with(Method::convolution);
  position.kernel_size = 5;
  const auto options = position.offsets({9, 9}, false, false);
  EXPECT_EQ(options.sharing, Sharing::window);
  EXPECT_EQ(options.radius, 2);
  EXPECT_EQ(count_slots(options), 25);
}

TEST(Position, EveryMethodIsValidByDefault) {
  for (const auto& entry : kMethods) EXPECT_NO_THROW(with(entry.value).check()) << entry.name;
}

TEST(Position, RotaryWorksWithEveryMethodThatHasSharedQueriesAndKeys) {
  for (const auto& entry : kMethods) {
    auto position = with(entry.value);
    position.rotary = true;
    const bool relative = entry.value == Method::translution || entry.value == Method::convolution;
    if (relative)
      EXPECT_THROW(position.check(), std::invalid_argument) << entry.name;
    else
      EXPECT_NO_THROW(position.check()) << entry.name;
  }
  auto values_only = with(Method::translution);
  values_only.rotary = true;
  values_only.roles = Roles::parse("v");
  EXPECT_NO_THROW(values_only.check());
}

}  // namespace
}  // namespace translution
