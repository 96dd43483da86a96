#include "translution/core/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "translution/core/position.h"

namespace translution {

using namespace detail;

namespace {

TEST(NearName, HasTheFewestEdits) {
  const std::vector<std::string> known{"rotary", "translution", "alpha_translution"};
  EXPECT_EQ(near_name("rotery", known), "rotary");
  EXPECT_EQ(near_name("transluton", known), "translution");
  EXPECT_EQ(near_name("alpha-translution", known), "alpha_translution");
}

TEST(NearName, IsTheFirstOfTwoEquallyCloseNames) {
  EXPECT_EQ(near_name("bat", {"cat", "hat"}), "cat");
}

TEST(NearName, MatchesBySpellingPrefixOrWords) {
  const std::vector<std::string> known{"--lr",      "--batch", "--image-size",
                                       "--workers", "--seeds", "--schedule"};
  EXPECT_EQ(near_name("--bacth", known), "--batch");
  EXPECT_EQ(near_name("--batch-size", known), "--batch");
  EXPECT_EQ(near_name("--sched", known), "--schedule");
  EXPECT_EQ(near_name("--num_workers", known), "--workers");
  EXPECT_EQ(near_name("--size", known), "--image-size");
  EXPECT_EQ(near_name("--Seed", known), "--seeds");
}

TEST(NearName, IsEmptyIfNoNameIsClose) {
  const std::vector<std::string> known{"--lr", "--to", "--help", "--out"};
  for (const char* name : {"--foo", "--length", "--x", "--", ""})
    EXPECT_EQ(near_name(name, known), std::nullopt) << name;
  EXPECT_EQ(near_name("b", {"a", "c"}), std::nullopt);
}

TEST(NameHint, ListsTheNamesIfNoneIsClose) {
  EXPECT_EQ(name_hint("cosin", {"cosine", "constant"}), "; did you mean 'cosine'?");
  EXPECT_EQ(name_hint("step", {"cosine", "constant"}), "; expected one of cosine, constant");
  EXPECT_EQ(name_hint("step", {}), "");
  EXPECT_EQ(name_hint("step", std::vector<std::string>(100, "parameter")), "");
}

template <typename Value, size_t count>
void expect_round_trip(const Named<Value> (&table)[count]) {
  const auto names = names_of(table);
  EXPECT_EQ(names.size(), count);
  for (const auto& entry : table) {
    EXPECT_EQ(parse_name("value", table, entry.name), entry.value);
    EXPECT_STREQ(name_of(table, entry.value), entry.name);
    EXPECT_STRNE(entry.summary, "");
  }
  EXPECT_THAT(std::set<std::string>(names.begin(), names.end()), testing::SizeIs(count));
}

TEST(Names, EveryEnumerationRoundTripsThroughItsNames) {
  expect_round_trip(kMethods);
  expect_round_trip(kEncodings);
  expect_round_trip(kSharings);
  expect_round_trip(kMixings);
}

TEST(Names, AValueWithoutANameIsAQuestionMark) {
  constexpr Named<Mixing> kOnlySum[] = {{Mixing::sum, "sum", "added"}};
  EXPECT_STREQ(name_of(kOnlySum, Mixing::mean), "?");
}

TEST(Times, JoinsSizesWithX) {
  EXPECT_EQ(times(std::vector<int64_t>{4, 7, 7}), "4x7x7");
  EXPECT_EQ(times(std::vector<int64_t>{160}), "160");
  EXPECT_EQ(times(std::vector<int64_t>{}), "");
}

}  // namespace
}  // namespace translution
