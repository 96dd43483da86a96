#include "translution/core/roles.h"

#include <gtest/gtest.h>

namespace translution {
namespace {

TEST(Roles, AreAllRelativeByDefault) {
  EXPECT_EQ(Roles().str(), "qkv");
  EXPECT_TRUE(Roles().any());
}

TEST(Roles, EverySubsetRoundTripsThroughItsName) {
  for (int bits = 0; bits < 8; ++bits) {
    const Roles roles{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    EXPECT_EQ(Roles::parse(roles.str()), roles) << roles.str();
    EXPECT_EQ(roles.any(), bits != 0) << roles.str();
  }
}

TEST(Roles, AreParsedInAnyOrderAndWrittenInOne) {
  for (const char* text : {"qkv", "qvk", "kqv", "kvq", "vqk", "vkq"})
    EXPECT_EQ(Roles::parse(text).str(), "qkv") << text;
  EXPECT_EQ(Roles::parse("vq").str(), "qv");
}

TEST(Roles, TheEmptySubsetIsNamedNone) {
  EXPECT_EQ(Roles::parse("none"), (Roles{false, false, false}));
  EXPECT_FALSE(Roles::parse("none").any());
}

}  // namespace
}  // namespace translution
