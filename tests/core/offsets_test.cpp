#include "translution/core/offsets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>

#include "tests/core/offset_cases.h"

namespace translution {
namespace {

using Coordinates = std::vector<int64_t>;
using testing::ElementsAre;
using testing::Optional;

// --- an independent implementation of the documented rules, pair by pair

Coordinates position_of(int64_t token, const std::vector<int64_t>& grid) {
  Coordinates position(grid.size());
  for (size_t axis = grid.size(); axis-- > 0; token /= grid[axis])
    position[axis] = token % grid[axis];
  return position;
}

// The first bucket beyond r has width r+1; each further one is twice as wide.
int64_t doubling_bucket(int64_t distance, int64_t radius) {
  return radius + 1 + std::ilogb(static_cast<double>(distance / (radius + 1)));
}

// The bucket of the offset of two grid tokens; nothing if the pair is omitted.
std::optional<Coordinates> expected_bucket(const Coordinates& a, const Coordinates& b,
                                           const OffsetOptions& o) {
  Coordinates delta, bucket;
  bool beyond = false;
  for (size_t axis = 0; axis < a.size(); ++axis) {
    delta.push_back(a[axis] - b[axis]);
    beyond = beyond || std::abs(delta.back()) > o.radius;
  }
  if (o.sharing == Sharing::none || !beyond) return delta;
  if (o.sharing == Sharing::window) return std::nullopt;
  for (const int64_t d : delta) {
    const int64_t sign = d < 0 ? -1 : 1;
    if (o.sharing == Sharing::direction)
      bucket.push_back(std::abs(d) > o.radius ? sign * (o.radius + 1) : 0);
    else
      bucket.push_back(std::abs(d) > o.radius ? sign * doubling_bucket(std::abs(d), o.radius) : d);
  }
  return bucket;
}

struct Expected {
  std::vector<int64_t> slot, key_slot;      // N x N
  std::vector<Coordinates> offset_of_slot;  // grid slots only
  int64_t num_slots = 0, num_pairs = 0, num_tokens = 0;
};

Expected expect_relative(const OffsetOptions& o, int64_t N) {
  const int64_t first = o.cls ? 1 : 0;
  std::map<std::pair<int64_t, int64_t>, Coordinates> buckets;
  std::map<Coordinates, int64_t> slot_of;
  for (int64_t i = first; i < N; ++i)
    for (int64_t j = first; j < (o.causal ? i + 1 : N); ++j)
      if (const auto bucket =
              expected_bucket(position_of(i - first, o.grid), position_of(j - first, o.grid), o))
        slot_of[buckets[{i, j}] = *bucket];
  Expected e;
  for (auto& [bucket, slot] : slot_of) {
    slot = e.num_slots++;
    e.offset_of_slot.push_back(bucket);
  }
  e.slot.assign(N * N, -1);
  e.key_slot.assign(N * N, -1);
  for (const auto& [pair, bucket] : buckets) {
    Coordinates mirrored = bucket;
    for (int64_t& d : mirrored) d = -d;
    const int64_t p = pair.first * N + pair.second;
    e.slot[p] = slot_of.at(bucket);
    e.key_slot[p] = o.causal ? e.slot[p] : slot_of.at(mirrored);
  }
  if (!o.cls) return e;
  const int64_t itself = e.num_slots;
  e.slot[0] = e.key_slot[0] = itself;
  for (int64_t t = 1; t < N; ++t) {
    if (!o.causal) e.slot[t] = e.key_slot[t] = itself + 1;
    e.slot[t * N] = e.key_slot[t * N] = itself + 2;
  }
  e.num_slots += 3;
  return e;
}

Expected expect_absolute(const OffsetOptions& o, int64_t N) {
  Expected e;
  e.slot.assign(N * N, -1);
  e.key_slot.assign(N * N, -1);
  for (int64_t i = 0; i < N; ++i)
    for (int64_t j = 0; j < (o.causal ? i + 1 : N); ++j) e.slot[i * N + j] = e.num_slots++;
  for (int64_t i = 0; i < N; ++i)
    for (int64_t j = 0; j < (o.causal ? i + 1 : N); ++j)
      e.key_slot[i * N + j] = o.causal ? e.slot[i * N + j] : e.slot[j * N + i];
  return e;
}

Expected expect(const OffsetOptions& o) {
  int64_t N = o.cls ? 1 : 0, cells = 1;
  for (const int64_t side : o.grid) cells *= side;
  N += cells;
  auto e = o.encoding == Encoding::absolute ? expect_absolute(o, N) : expect_relative(o, N);
  e.num_tokens = N;
  for (const int64_t slot : e.slot) e.num_pairs += slot >= 0;
  return e;
}

// --- tests

TEST(OffsetTable, GivesEveryPairTheDocumentedSlotAndKeySlot) {
  for (const auto& options : offset_cases()) {
    const OffsetTable table(options);
    const auto e = expect(options);
    std::vector<int64_t> slots, key_slots;
    for (int64_t i = 0; i < table.num_tokens(); ++i) {
      for (int64_t j = 0; j < table.num_tokens(); ++j) {
        slots.push_back(table.slot(i, j));
        key_slots.push_back(table.key_slot(i, j));
      }
    }
    EXPECT_EQ(slots, e.slot) << describe(options);
    EXPECT_EQ(key_slots, e.key_slot) << describe(options);
  }
}

TEST(OffsetTable, CountsAgreeWithTheBuiltTable) {
  for (const auto& options : offset_cases()) {
    const OffsetTable table(options);
    const auto e = expect(options);
    const std::vector<int64_t> expected{e.num_tokens, e.num_slots, e.num_pairs};
    EXPECT_THAT((std::vector{table.num_tokens(), table.num_slots(), table.num_pairs()}),
                testing::ContainerEq(expected))
        << describe(options);
    EXPECT_THAT((std::vector{count_tokens(options), count_slots(options), count_pairs(options)}),
                testing::ContainerEq(expected))
        << describe(options);
  }
}

TEST(OffsetTable, CountsGridsWhosePairsDoNotFitIntoMemory) {
  const OffsetOptions options{{255, 255}, /*cls=*/true};
  EXPECT_EQ(count_tokens(options), 65026);
  EXPECT_EQ(count_slots(options), 509 * 509 + 3);
  EXPECT_EQ(count_pairs(options), int64_t{65026} * 65026);
}

TEST(OffsetTable, NamesTheOffsetOfEveryGridSlot) {
  for (const auto& options : offset_cases()) {
    const OffsetTable table(options);
    const auto e = expect(options);
    for (int64_t slot = 0; slot < table.num_slots(); ++slot) {
      if (slot < static_cast<int64_t>(e.offset_of_slot.size()))
        EXPECT_THAT(table.offset(slot), Optional(e.offset_of_slot[slot])) << describe(options);
      else
        EXPECT_EQ(table.offset(slot), std::nullopt) << describe(options);
    }
  }
}

TEST(OffsetTable, MirrorIsItsOwnInverseOnGrids) {
  for (const auto& options : offset_cases()) {
    const auto mirror = OffsetTable(options).mirror();
    for (size_t slot = 0; slot < mirror.size(); ++slot)
      EXPECT_EQ(mirror[mirror[slot]], static_cast<int64_t>(slot)) << describe(options);
  }
}

TEST(OffsetTable, HasOneSlotPerOffsetAndThreeForTheClassToken) {
  EXPECT_EQ(OffsetTable({{7, 7}, /*cls=*/true}).num_slots(), 13 * 13 + 3);
  EXPECT_EQ(OffsetTable({{160}, false, /*causal=*/true}).num_slots(), 160);
  EXPECT_EQ(OffsetTable({{4, 7, 7}}).num_slots(), 7 * 13 * 13);
}

TEST(OffsetTable, WritesSlotsAsOffsets) {
  const OffsetTable table({{3, 4}, /*cls=*/true});
  EXPECT_EQ(table.slot_name(0), "(-2,-3)");
  EXPECT_EQ(table.slot_name(table.slot(2, 5)), "(-1,+1)");
  EXPECT_EQ(table.slot_name(table.slot(1, 1)), "(0,0)");
  EXPECT_EQ(table.slot_name(table.slot(0, 0)), "cls");
  EXPECT_EQ(table.slot_name(table.slot(0, 7)), "cls in");
  EXPECT_EQ(table.slot_name(table.slot(7, 0)), "cls out");
  EXPECT_EQ(OffsetTable({{3}, true, false, Encoding::absolute}).slot_name(7), "slot 7");
  EXPECT_EQ(OffsetTable::from_relation({0}, 1, 2).slot_name(1), "slot 1");
}

TEST(OffsetTable, DirectionSharingHasTheNeighbourhoodAndOneSlotPerDirection) {
  const OffsetTable table({{9, 9}, false, false, Encoding::relative, Sharing::direction, 1});
  EXPECT_EQ(table.num_slots(), 9 + 8);
  EXPECT_THAT(table.offset(table.slot(0, 80)), Optional(ElementsAre(-2, -2)));
  EXPECT_THAT(table.offset(table.slot(40, 38)), Optional(ElementsAre(0, 2)));
  EXPECT_EQ(table.slot(40, 38), table.slot(40, 45)) << "(0,+2) and (-1,+4) point the same way";
}

TEST(OffsetTable, LogarithmicBucketsDoubleInWidth) {
  const OffsetTable table({{33}, false, true, Encoding::relative, Sharing::logarithmic, 1});
  std::vector<int64_t> buckets;
  for (int64_t distance = 0; distance <= 32; ++distance)
    buckets.push_back((*table.offset(table.slot(distance, 0)))[0]);
  EXPECT_THAT(buckets, ElementsAre(0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5,
                                   5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6));
}

TEST(OffsetTable, ARelationTakesKeySlotsFromTheReversePair) {
  // 0: itself, 1: child of, 2: parent of; slot 3 is not used.
  const auto table = OffsetTable::from_relation({0, 1, -1, 2, 0, 1, -1, 2, 0}, 3, 4);
  EXPECT_THAT(table.mirror(), ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(table.key_slot(0, 1), 2);
  EXPECT_EQ(table.key_slot(0, 2), -1);
  EXPECT_EQ(table.num_pairs(), 7);
  EXPECT_TRUE(table.options().grid.empty());
}

TEST(OffsetTable, ARelationWithoutAReversePairUsesItsOwnSlot) {
  const auto table = OffsetTable::from_relation({0, 1, -1, 0}, 2, 2);
  EXPECT_THAT(table.mirror(), ElementsAre(0, 1));
}

TEST(OffsetTable, ARelationUsesTheGivenMirror) {
  const auto table = OffsetTable::from_relation({0, 1, 1, 0}, 2, 2, {1, 0});
  EXPECT_EQ(table.key_slot(0, 0), 1);
  EXPECT_EQ(table.key_slot(0, 1), 0);
}

TEST(OffsetTable, BuildsA33x33GridWellWithinASecond) {
  const auto start = std::chrono::steady_clock::now();
  const OffsetTable table({{33, 33}, /*cls=*/true});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", std::to_string(seconds.count()));
  EXPECT_EQ(table.num_pairs(), 1090 * 1090);
  EXPECT_LT(seconds.count(), 1.0);
}

}  // namespace
}  // namespace translution
