#include "translution/core/pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/core/offset_cases.h"

namespace translution {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(const PairsName& name) {
  try {
    find_pairs(name);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PairsText, DescribesAGrid) {
  EXPECT_EQ(pairs_text(OffsetOptions{{7, 7}, true}), "7x7 cls");
  EXPECT_EQ(pairs_text(OffsetOptions{{160}, false, true}), "160 causal");
  EXPECT_EQ(pairs_text(OffsetOptions{{4, 5, 6}, true, true, Encoding::absolute}),
            "4x5x6 cls causal absolute");
  EXPECT_EQ(pairs_text(OffsetOptions{{9}, false, false, Encoding::relative, Sharing::window, 2}),
            "9 window=2");
}

// A traced graph stores the text only, so the text must determine the complete table.
TEST(PairsText, RoundTripsEveryTable) {
  for (const auto& options : offset_cases()) {
    const OffsetTable table(options);
    const auto parsed = find_offsets(pairs_text(options));
    ASSERT_EQ(parsed->num_slots(), table.num_slots()) << pairs_text(options);
    EXPECT_EQ(parsed->spans(), table.spans()) << pairs_text(options);
    EXPECT_EQ(pairs_text(*parsed), pairs_text(options));
  }
}

TEST(PairsText, RoundTripsARelation) {
  const auto table = OffsetTable::from_relation({0, 1, 1, 2, 0, -1, 2, -1, 0}, 3, 4, {0, 2, 1, 3});
  const auto text = pairs_text(table);
  EXPECT_EQ(text, "relation mirror=0,2,1,3 slots=0,1*2,2,0,-1,2,-1,0");
  const auto parsed = find_offsets(text);
  EXPECT_EQ(parsed->spans(), table.spans());
  EXPECT_EQ(parsed->mirror(), table.mirror());
  EXPECT_EQ(pairs_text(table, /*causal=*/true), text + " causal");
}

TEST(Pairs, AreSharedByCallsWithTheSameName) {
  EXPECT_EQ(find_pairs({"6x6 cls"}), find_pairs({"6x6 cls"}));
  EXPECT_NE(find_pairs({"6x6 cls"}), find_pairs({"6x6"}));
  EXPECT_NE(find_pairs({"6x6 cls", {}, {0}}), find_pairs({"6x6 cls"}));
}

TEST(Pairs, HaveTheSlotsOfTheOffsetTable) {
  for (const auto& options : offset_cases()) {
    const OffsetTable table(options);
    const auto pairs = find_pairs({pairs_text(options)});
    ASSERT_EQ(pairs->tokens(), table.num_tokens());
    EXPECT_EQ(pairs->slot_count(), table.num_slots());
    bool all = true;
    for (int64_t i = 0; i < pairs->queries(); ++i)
      for (int64_t j = 0; j < pairs->tokens(); ++j) {
        const size_t pair = i * pairs->tokens() + j;
        ASSERT_EQ(pairs->slots()[pair], table.slot(i, j)) << describe(options);
        ASSERT_EQ(pairs->open()[pair], table.slot(i, j) >= 0) << describe(options);
        all = all && pairs->open()[pair];
      }
    EXPECT_EQ(pairs->all_open(), all);
    EXPECT_EQ(pairs->all_have_slots(), all);
  }
}

TEST(Pairs, WithoutOffsetsFitAnyNumberOfTokens) {
  const auto all = find_pairs({"", {}, {}, 3}), causal = find_pairs({"causal", {}, {}, 3});
  EXPECT_TRUE(all->all_open());
  EXPECT_EQ(all->slot_count(), 0);
  EXPECT_THAT(causal->open(), ElementsAre(1, 0, 0, 1, 1, 0, 1, 1, 1));
  EXPECT_THAT(find_pairs({"causal", {}, {1, 0}, 3})->open(), ElementsAre(1, 1, 0, 1, 0, 0));
}

TEST(Pairs, ACausalRelationMasksLaterTokensButStoresTheirSlots) {
  const auto table = OffsetTable::from_relation({0, 1, 1, 0}, 2, 2, {0, 1});
  const auto pairs = find_pairs({pairs_text(table, /*causal=*/true)});
  EXPECT_THAT(pairs->slots(), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(pairs->open(), ElementsAre(1, 0, 1, 1));
  EXPECT_TRUE(pairs->all_have_slots());
  EXPECT_FALSE(pairs->all_open());
}

TEST(Pairs, WithFewerTokensAreThePairsOfTheFirstTokens) {
  for (const auto& options : offset_cases()) {
    if (options.grid.size() != 1) continue;
    const OffsetTable table(options);
    for (const int64_t n : {int64_t{1}, table.num_tokens() / 2, table.num_tokens()}) {
      if (n < 1) continue;
      const auto pairs = find_pairs({pairs_text(options), {}, {}, n});
      EXPECT_EQ(pairs->tokens(), n);
      EXPECT_EQ(pairs->slot_count(), table.num_slots());
      EXPECT_TRUE(list_pairs(pairs->spans()) == list_pairs(table, n))
          << describe(options) << ", first " << n;
    }
  }
}

TEST(Pairs, WithFewerCausalTokensHaveTheSpansOfASmallerTable) {
  EXPECT_EQ(find_pairs({"40 causal", {}, {}, 23})->spans(), find_pairs({"23 causal"})->spans());
}

// A token of the smaller grid is the token at the same position in the larger one.
TEST(Pairs, OnASmallerGridUseTheSlotsOfTheLargerOne) {
  const OffsetTable large({{7, 5}, /*cls=*/true});
  const auto pairs = find_pairs({"7x5 cls", {4, 3}, {}});
  ASSERT_EQ(pairs->tokens(), 1 + 4 * 3);
  const auto token_in_large = [](int64_t t) {
    return t == 0 ? 0 : 1 + (t - 1) / 3 * 5 + (t - 1) % 3;
  };
  PairList expected;
  for (int64_t i = 0; i < pairs->tokens(); ++i)
    for (int64_t j = 0; j < pairs->tokens(); ++j) {
      EXPECT_EQ(pairs->slots()[i * pairs->tokens() + j],
                large.slot(token_in_large(i), token_in_large(j)));
      expected.emplace(i, j, large.slot(token_in_large(i), token_in_large(j)),
                       large.key_slot(token_in_large(i), token_in_large(j)));
    }
  EXPECT_TRUE(list_pairs(pairs->spans()) == expected);
}

TEST(Pairs, WithSelectedRowsHaveOneQueryPerRow) {
  const auto pairs = find_pairs({"2x3 cls", {}, {4, 0, 4}});
  const OffsetTable table({{2, 3}, /*cls=*/true});
  ASSERT_EQ(pairs->queries(), 3);
  for (int64_t j = 0; j < 7; ++j) {
    EXPECT_EQ(pairs->slots()[j], table.slot(4, j));
    EXPECT_EQ(pairs->slots()[7 + j], table.slot(0, j));
    EXPECT_EQ(pairs->slots()[14 + j], table.slot(4, j));
  }
}

TEST(Pairs, RejectInvalidNames) {
  for (const char* text :
       {"seven", "7x", "7x7 class", "7x7 window=", "7x7 window=a", "cls", "7 7", "causal 7",
        "relation", "relation slots=0 mirror=0", "relation mirror=0 slots=0*0",
        "relation mirror=0 slots=0*99999999999", "relation mirror=0 slots=0 more"})
    EXPECT_THAT(message_of({text}), HasSubstr("expected a text such as '7x7 cls'")) << text;
  EXPECT_THAT(message_of({""}),
              HasSubstr("expected a number of tokens of 1 or more with '', got 0"));
  EXPECT_THAT(message_of({"7x0"}), HasSubstr("expected a grid with sides of 1 or more, got 7x0"));
  EXPECT_THAT(message_of({"relation mirror=0 slots=0,1,0"}),
              HasSubstr("relation: expected 1 entries for 1 tokens, got 3"));
  EXPECT_THAT(message_of({"7x7 cls", {}, {}, 49}), HasSubstr("expected 50 tokens, got 49"));
  EXPECT_THAT(message_of({"9 causal", {}, {}, 10}), HasSubstr("expected 1 to 9 tokens, got 10"));
  EXPECT_THAT(message_of({"7x7", {8, 1}, {}}), HasSubstr("expected a grid within 7x7, got 8x1"));
  EXPECT_THAT(message_of({"7x7", {0, 1}, {}}), HasSubstr("expected a grid within 7x7, got 0x1"));
  EXPECT_THAT(message_of({"7x7", {7}, {}}), HasSubstr("a grid of 2 sides within 7x7, got 7"));
  EXPECT_THAT(message_of({"7x7", {2, 2}, {}, 5}),
              HasSubstr("expected 4 tokens for the grid 2x2, got 5"));
  EXPECT_THAT(message_of({"relation mirror=0 slots=0", {1}, {}}),
              HasSubstr("expected no grid with a relation, got 1"));
  EXPECT_THAT(message_of({"5", {}, {5}}), HasSubstr("query rows from 0 to 4, got 5 to 5"));
  EXPECT_THAT(message_of({"5", {}, {-1, 2}}), HasSubstr("query rows from 0 to 4, got -1 to 2"));
}

TEST(Pairs, CanBeFoundFromManyThreads) {
  std::vector<std::shared_ptr<const Pairs>> found(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] {
      for (int64_t n = 1; n <= 40; ++n) found[t] = find_pairs({"40 causal", {}, {n - 1}, n});
    });
  for (auto& thread : threads) thread.join();
  for (const auto& pairs : found) EXPECT_EQ(pairs, found[0]);
}

TEST(Recent, EvictsTheLeastRecentlyUsedValue) {
  Recent<int, int> squares(2);
  int computed = 0;
  const auto square = [&](int n) {
    return *squares.get(n, [&] { return ++computed, std::make_shared<const int>(n * n); });
  };
  EXPECT_EQ(square(1) + square(2) + square(1) + square(3), 1 + 4 + 1 + 9);  // evicts 2
  EXPECT_EQ(computed, 3);
  EXPECT_EQ(square(1), 1);
  EXPECT_EQ(computed, 3);
  EXPECT_EQ(square(2), 4);
  EXPECT_EQ(computed, 4);
}

TEST(Recent, HoldsTheLatestValueEvenIfItIsTooLarge) {
  Recent<int, int> values(10, [](const int& value) { return int64_t{value}; });
  const auto large = values.get(0, [] { return std::make_shared<const int>(100); });
  EXPECT_EQ(values.get(0, [] { return std::make_shared<const int>(1); }), large);
}

}  // namespace
}  // namespace translution
