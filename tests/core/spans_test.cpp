#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/core/offset_cases.h"
#include "translution/core/offsets.h"

namespace translution {

using namespace detail;

namespace {

constexpr uint32_t kSeed = 20240607;

std::vector<PairSpan> spans_of(const OffsetTable& table, int64_t slot) {
  std::vector<PairSpan> spans;
  for (const PairSpan& span : table.spans())
    if (span.slot == slot) spans.push_back(span);
  return spans;
}

TEST(Spans, CoverEveryPairExactlyOnceInTheOrderOfSlots) {
  for (const auto& options : offset_cases()) {
    const OffsetTable table(options);
    const auto& spans = table.spans();
    EXPECT_TRUE(list_pairs(spans) == list_pairs(table, table.num_tokens())) << describe(options);
    EXPECT_TRUE(
        std::is_sorted(spans.begin(), spans.end(),
                       [](const PairSpan& a, const PairSpan& b) { return a.slot < b.slot; }))
        << describe(options);
    for (const PairSpan& span : spans) {
      const bool valid_step =
          (span.di == 1 && span.dj == 1) || (span.di + span.dj == 1 && span.di >= 0);
      EXPECT_TRUE(valid_step && span.length > 0) << describe(options);
    }
  }
}

TEST(Spans, AnOffsetAlongTheFirstAxisIsOneSpan) {
  const OffsetTable table({{7, 7}});
  const int64_t down = table.slot(7, 0), up = table.slot(0, 7);
  EXPECT_EQ(table.slot_name(down), "(+1,0)");
  EXPECT_THAT(spans_of(table, down), testing::ElementsAre(PairSpan{down, up, 7, 0, 42, 1, 1}));
  EXPECT_THAT(spans_of(table, table.slot(0, 0)),
              testing::ElementsAre(PairSpan{table.slot(0, 0), table.slot(0, 0), 0, 0, 49, 1, 1}));
}

TEST(Spans, AnOffsetAlongTheLastAxisIsOneSpanPerRowOfTheGrid) {
  const OffsetTable table({{7, 7}});
  const auto spans = spans_of(table, table.slot(2, 0));  // (0,+2)
  ASSERT_EQ(spans.size(), 7u);
  for (const PairSpan& span : spans) EXPECT_EQ(span.length, 5);
}

TEST(Spans, TextHasOneSpanPerOffset) {
  EXPECT_EQ(OffsetTable({{160}, false, /*causal=*/true}).spans().size(), 160u);
  EXPECT_EQ(OffsetTable({{40}}).spans().size(), 79u);
}

TEST(Spans, TheClassTokenHasOneFanPerDirection) {
  const OffsetTable table({{7, 7}, /*cls=*/true});
  const int64_t itself = 169, in = 170, out = 171;
  EXPECT_THAT(spans_of(table, itself),
              testing::ElementsAre(PairSpan{itself, itself, 0, 0, 1, 1, 1}));
  EXPECT_THAT(spans_of(table, in), testing::ElementsAre(PairSpan{in, in, 0, 1, 49, 0, 1}));
  EXPECT_THAT(spans_of(table, out), testing::ElementsAre(PairSpan{out, out, 1, 0, 49, 1, 0}));
}

PairList expected_selection(const OffsetTable& table, const std::vector<int64_t>& rows) {
  PairList pairs;
  for (size_t query = 0; query < rows.size(); ++query)
    for (int64_t j = 0; j < table.num_tokens(); ++j)
      if (table.slot(rows[query], j) >= 0)
        pairs.emplace(query, j, table.slot(rows[query], j), table.key_slot(rows[query], j));
  return pairs;
}

TEST(SelectRows, GivesThePairsOfTheRowsInAnyOrderWithRepeats) {
  std::mt19937 random(kSeed);
  for (const auto& options : offset_cases()) {
    const OffsetTable table(options);
    const int64_t last = table.num_tokens() - 1;
    std::uniform_int_distribution<int64_t> token(0, last);
    std::vector<std::vector<int64_t>> choices{{0}, {last}, {last, 0, last}, {}};
    choices.emplace_back();
    for (int64_t i = 0; i <= last; ++i) choices.back().push_back(i);
    choices.push_back({choices.back().rbegin(), choices.back().rend()});
    choices.emplace_back(7);
    for (int64_t& row : choices.back()) row = token(random);
    for (const auto& rows : choices)
      EXPECT_TRUE(list_pairs(select_rows(table.spans(), rows)) == expected_selection(table, rows))
          << describe(options) << ", rows " << times(rows) << ", seed " << kSeed;
  }
}

TEST(SelectRows, AllRowsInOrderGiveTheOriginalSpans) {
  const OffsetTable table({{4, 5}, /*cls=*/true});
  std::vector<int64_t> all(table.num_tokens());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  EXPECT_EQ(select_rows(table.spans(), all), table.spans());
}

TEST(SelectRows, TheClassTokenGivesOnePairAndOneFan) {
  const OffsetTable table({{7, 7}, /*cls=*/true});
  EXPECT_THAT(
      select_rows(table.spans(), {0}),
      testing::ElementsAre(PairSpan{169, 169, 0, 0, 1, 1, 1}, PairSpan{170, 170, 0, 1, 49, 0, 1}));
}

}  // namespace
}  // namespace translution
