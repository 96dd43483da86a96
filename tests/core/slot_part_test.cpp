#include "translution/core/slot_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/core/offset_cases.h"
#include "translution/core/pairs.h"

namespace translution {
namespace {

using testing::ElementsAre;

std::vector<int64_t> pairs_by_slot(const OffsetTable& table) {
  std::vector<int64_t> pairs(table.num_slots(), 0);
  for (const auto& span : table.spans()) pairs[span.slot] += span.length;
  return pairs;
}

TEST(SlotPart, EverySlotIsInOnePart) {
  for (const auto& options : offset_cases()) {
    const OffsetTable table(options);
    const int64_t slots = table.num_slots();
    for (const int64_t parts : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{5}, slots}) {
      if (parts > slots) continue;
      std::vector<int64_t> all;
      for (int64_t index = 0; index < parts; ++index) {
        const auto part = slots_of(table, {index, parts});
        EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
        EXPECT_EQ(part.size(), count_slots(slots, SlotPart{index, parts})) << describe(options);
        EXPECT_LE(std::abs(static_cast<int64_t>(part.size()) - slots / parts), 1);
        all.insert(all.end(), part.begin(), part.end());
      }
      std::sort(all.begin(), all.end());
      ASSERT_EQ(all.size(), slots) << describe(options);
      for (int64_t slot = 0; slot < slots; ++slot) ASSERT_EQ(all[slot], slot);
    }
  }
}

// The largest slots are dealt first, so the last slots even out what the first ones differ by.
TEST(SlotPart, PartsDifferByAtMostTheLargestSlot) {
  for (const auto& options : offset_cases()) {
    const OffsetTable table(options);
    const auto pairs = pairs_by_slot(table);
    for (const int64_t parts : {2, 3, 4}) {
      if (parts > table.num_slots()) continue;
      std::vector<int64_t> sums;
      for (int64_t index = 0; index < parts; ++index) {
        sums.push_back(0);
        for (const int64_t slot : slots_of(table, {index, parts})) sums.back() += pairs[slot];
      }
      const auto [low, high] = std::minmax_element(sums.begin(), sums.end());
      EXPECT_LE(*high - *low, *std::max_element(pairs.begin(), pairs.end())) << describe(options);
    }
  }
}

TEST(SlotPart, OfATextHasHalfOfThePairsOfALongText) {
  const OffsetTable table({{160}, /*cls=*/false, /*causal=*/true});
  const auto pairs = pairs_by_slot(table);
  for (const int64_t index : {0, 1}) {
    int64_t sum = 0;
    for (const int64_t slot : slots_of(table, {index, 2})) sum += pairs[slot];
    EXPECT_EQ(sum, table.num_pairs() / 2);
  }
}

TEST(SlotPart, SlotsAreDealedInTurnByTheirPairs) {
  const OffsetTable table({{7}, /*cls=*/false, /*causal=*/true});  // slot d has 7 - d pairs
  EXPECT_THAT(slots_of(table, {0, 3}), ElementsAre(0, 5, 6));
  EXPECT_THAT(slots_of(table, {1, 3}), ElementsAre(1, 4));
  EXPECT_THAT(slots_of(table, {2, 3}), ElementsAre(2, 3));
}

TEST(SlotPart, PairsOfAPartAreThePairsOfItsSlotsUnderNewNumbers) {
  for (const auto& options : offset_cases()) {
    const OffsetTable table(options);
    if (table.num_slots() < 3) continue;
    const auto text = pairs_text(options);
    for (int64_t index = 0; index < 3; ++index) {
      const auto slots = slots_of(table, {index, 3});
      const auto part = find_pairs({text + part_text({index, 3})});
      ASSERT_EQ(part->slot_count(), slots.size());
      EXPECT_EQ(count_rows(text + part_text({index, 3})), slots.size());
      EXPECT_EQ(part->open(), find_pairs({text})->open());
      PairList expected;
      for (int64_t i = 0; i < table.num_tokens(); ++i)
        for (int64_t j = 0; j < table.num_tokens(); ++j) {
          const auto place = std::find(slots.begin(), slots.end(), table.slot(i, j));
          const bool own = place != slots.end();
          const int64_t row = own ? place - slots.begin() : -1;
          ASSERT_EQ(part->slots()[i * table.num_tokens() + j], row) << describe(options);
          if (own) expected.emplace(i, j, row, row);
        }
      EXPECT_TRUE(list_pairs(part->spans()) == expected) << describe(options);
    }
  }
}

TEST(SlotPart, OfASmallerGridAndSomeRowsHasTheSlotsOfTheLargerOne) {
  const OffsetTable large({{7, 5}, /*cls=*/true});
  const auto slots = slots_of(large, {1, 2});
  const auto whole = find_pairs({"7x5 cls", {4, 3}, {5, 2}});
  const auto part = find_pairs({"7x5 cls part=1/2", {4, 3}, {5, 2}});
  ASSERT_EQ(part->slots().size(), whole->slots().size());
  EXPECT_EQ(part->open(), whole->open());
  for (size_t pair = 0; pair < part->slots().size(); ++pair) {
    const auto place = std::find(slots.begin(), slots.end(), whole->slots()[pair]);
    EXPECT_EQ(part->slots()[pair], place == slots.end() ? -1 : place - slots.begin());
  }
}

TEST(SlotPart, OfARelationKeepsItsCausalMask) {
  const auto table = OffsetTable::from_relation({0, 1, 1, 0}, 2, 2, {0, 1});
  const auto part = find_pairs({pairs_text(table, /*causal=*/true) + " part=1/2"});
  EXPECT_THAT(part->slots(), ElementsAre(-1, 0, 0, -1));
  EXPECT_THAT(part->open(), ElementsAre(1, 0, 1, 1));
}

}  // namespace
}  // namespace translution
