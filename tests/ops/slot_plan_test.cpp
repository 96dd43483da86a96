// How the pairs of a layer are split into shards and chunks.

#include "translution/kernels/slot_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace translution::kernels {
namespace {

OffsetTable table_of(std::vector<int64_t> grid, bool cls, bool causal) {
  OffsetOptions options;
  options.grid = std::move(grid);
  options.cls = cls;
  options.causal = causal;
  return OffsetTable(options);
}

SlotWork work_of(const OffsetTable& table, int64_t batch, int64_t width) {
  return {table.num_tokens(), table.num_pairs(), table.num_slots(), batch, width};
}

int64_t shards_of(const SlotWork& work) {
  const auto counts = count_shards(work);
  return counts.sums * counts.parts;
}

TEST(ShardCounts, OfALargeLayerAreEnoughForManyCores) {
  const auto patches = table_of({14, 14}, true, false);
  for (const int64_t batch : {1, 8, 64, 256})
    EXPECT_GE(shards_of(work_of(patches, batch, 768)), batch >= 64 ? 40 : 64) << batch;
  EXPECT_GE(shards_of(work_of(table_of({1024}, false, true), 8, 768)), 64);
  EXPECT_GE(shards_of(work_of(table_of({7, 7}, true, false), 512, 192)), 64);
  EXPECT_GE(shards_of(work_of(table_of({7, 7}, true, false), 64, 192)), 16);
}

TEST(ShardCounts, OfATinyLayerAreFew) {
  EXPECT_EQ(shards_of(work_of(table_of({2, 3}, true, false), 2, 12)), 1);
  EXPECT_EQ(shards_of(work_of(table_of({4}, false, true), 2, 8)), 1);
  EXPECT_LE(shards_of(work_of(table_of({4, 4}, true, false), 1, 32)), 8);
  EXPECT_EQ(shards_of({4, 16, 1, 1, 768}), 1) << "a slot belongs to one shard";
}

// An accumulator is as large as the features. All accumulators together are at most 16 times that,
// or as large as a table.
TEST(ShardCounts, BoundTheMemoryOfAccumulators) {
  for (const auto& table : {table_of({7, 7}, true, false), table_of({14, 14}, true, false),
                            table_of({160}, false, true)})
    for (const int64_t batch : {1, 2, 7, 16, 64, 100, 256, 1024})
      for (const int64_t width : {8, 24, 192, 768, 4096}) {
        const auto work = work_of(table, batch, width);
        const auto counts = count_shards(work);
        EXPECT_GE(counts.sums, 1);
        EXPECT_LE(counts.sums * batch * table.num_tokens(),
                  std::max(16 * batch * table.num_tokens(), table.num_slots() * width))
            << batch << " samples of " << width;
      }
}

TEST(ShardCounts, SplitTheBatchIntoEqualParts) {
  const auto table = table_of({7, 7}, true, false);
  for (int64_t batch = 1; batch <= 600; ++batch) {
    const auto counts = count_shards(work_of(table, batch, 192));
    EXPECT_EQ(batch % counts.parts, 0) << batch;
    EXPECT_TRUE(counts.parts == 1 || batch / counts.parts >= 64) << batch;
  }
}

// Every pair is in one chunk, every table row in one shard, and shards have similar sizes.
TEST(SlotPlan, AssignsEverySlotToOneShard) {
  for (const auto& table : {table_of({14, 14}, true, false), table_of({160}, false, true)})
    for (const int64_t batch : {2, 128}) {
      const auto plan = *slot_plan(*find_pairs({pairs_text(table)}), batch, 192);
      ASSERT_EQ(static_cast<int64_t>(plan.shards.size()), plan.counts.sums * plan.counts.parts);
      EXPECT_GT(plan.shards.size(), 8u);
      std::set<int64_t> slots, key_slots, pairs;
      int64_t least = plan.rows, most = 0;
      for (const auto& shard : plan.shards) {
        std::set<int64_t> own, own_keys;
        int64_t rows = 0;
        for (const int32_t c : shard) {
          const Chunk& chunk = plan.chunks[c];
          own.insert(chunk.slot), own_keys.insert(chunk.key_slot);
          rows += chunk.rows();
          for (const auto& pair : chunk.pairs)
            EXPECT_TRUE(
                pairs.insert(chunk.queries[pair.query] * table.num_tokens() + chunk.keys[pair.key])
                    .second);
        }
        for (const int64_t slot : own) EXPECT_TRUE(slots.insert(slot).second) << slot;
        for (const int64_t slot : own_keys) EXPECT_TRUE(key_slots.insert(slot).second) << slot;
        least = std::min(least, rows), most = std::max(most, rows);
      }
      EXPECT_EQ(static_cast<int64_t>(pairs.size()), table.num_pairs());
      EXPECT_LE(most, 2 * least) << batch << " samples, " << table.num_tokens() << " tokens";
    }
}

TEST(SlotPlan, StoresTheFirstRowOfEachChunk) {
  const auto pairs = find_pairs({"5x7 cls"});
  const auto plan = *slot_plan(*pairs, 3, 24);
  int64_t rows = 0;
  for (const Chunk& chunk : plan.chunks) {
    EXPECT_EQ(chunk.first_row, rows);
    rows += chunk.rows();
  }
  EXPECT_EQ(plan.rows, rows);
  EXPECT_LE(rows, encoded_rows(*pairs));
}

// The size of the encodings that forward saves does not depend on how the work is split.
TEST(SlotPlan, HasAtMostEncodedRowsForAnyBatch) {
  for (const char* text : {"7x7 cls", "14x14 cls", "40 causal", "9 causal direction=1",
                           "5x5 cls direction=1", "6x6 logarithmic=1", "4 absolute"})
    for (const int64_t batch : {1, 3, 16, 100, 512})
      for (const int64_t width : {8, 192}) {
        const auto pairs = find_pairs({text});
        const int64_t rows = slot_plan(*pairs, batch, width)->rows;
        EXPECT_LE(rows, encoded_rows(*pairs)) << text;
        EXPECT_LE(encoded_rows(*pairs), 2 * pairs->queries() * pairs->tokens()) << text;
      }
}

TEST(SlotPlan, IsCached) {
  const auto pairs = find_pairs({"5x7 cls"});
  EXPECT_EQ(slot_plan(*pairs, 3, 24), slot_plan(*pairs, 3, 24));
  EXPECT_NE(slot_plan(*pairs, 3, 24), slot_plan(*pairs, 4, 24));
}

}  // namespace
}  // namespace translution::kernels
