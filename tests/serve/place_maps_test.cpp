#include "apps/translution/serve/place_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace translution::serve {
namespace {

using Clock = PlaceMaps::Clock;

const PictureFormat kCanvas{1, 30, 20};
const RgbImage kImage{3, 5, std::vector<uint8_t>(45, 200)},
    kOther{3, 5, std::vector<uint8_t>(45, 9)};
const Clock::time_point kStart{};

std::vector<MapCell> cells_of(const PlaceMaps::Batch& batch) {
  std::vector<MapCell> cells;
  for (const int32_t place : batch.places) cells.push_back({place, 1, 0.5F});
  return cells;
}

TEST(CoarseFirst, HasEveryPlaceOnceAndCoversTheGridEarly) {
  const auto order = coarse_first(57, 57);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (int32_t place = 0; place < 57 * 57; ++place) ASSERT_EQ(sorted[place], place);
  ASSERT_EQ(order.size(), 57u * 57u);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(order[i] / 57 % 8 == 0 && order[i] % 57 % 8 == 0);
  EXPECT_THAT(coarse_first(1, 1), ::testing::ElementsAre(0));
}

TEST(PlaceMaps, GiveNewCellsOnlyAndEndWhenComplete) {
  PlaceMaps maps;
  EXPECT_FALSE(maps.next(4, kStart));
  const auto empty = maps.ask(0, 1, kImage, kCanvas, 0, kStart);
  EXPECT_EQ(empty.rows, 28);
  EXPECT_EQ(empty.cols, 16);
  int64_t known = 0;
  while (const auto batch = maps.next(100, kStart)) {
    EXPECT_EQ(batch->images.front().row, batch->places.front() / 16);
    EXPECT_EQ(batch->images.front().col, batch->places.front() % 16);
    maps.add(*batch, cells_of(*batch));
    const auto part = maps.ask(0, 1, kImage, kCanvas, known, kStart);
    EXPECT_EQ(part.cells.size(), batch->places.size());
    known += static_cast<int64_t>(part.cells.size());
  }
  EXPECT_EQ(known, 28 * 16);
  EXPECT_EQ(maps.ask(0, 1, kImage, kCanvas, 0, kStart).cells.size(), 28u * 16u);
}

TEST(PlaceMaps, AnImageThatNobodyAsksForIsNotContinued) {
  PlaceMaps maps;
  maps.ask(0, 1, kImage, kCanvas, 0, kStart);
  EXPECT_TRUE(maps.next(4, kStart + std::chrono::seconds(1)));
  EXPECT_FALSE(maps.next(4, kStart + std::chrono::seconds(3)));
  maps.ask(0, 1, kImage, kCanvas, 0, kStart + std::chrono::seconds(3));
  EXPECT_TRUE(maps.next(4, kStart + std::chrono::seconds(3)));
}

TEST(PlaceMaps, TheLeastCompleteMapIsNext) {
  PlaceMaps maps;
  maps.ask(0, 1, kImage, kCanvas, 0, kStart);
  const auto first = maps.next(4, kStart);
  maps.add(*first, cells_of(*first));
  maps.ask(1, 1, kImage, kCanvas, 0, kStart);
  EXPECT_EQ(maps.next(4, kStart)->run, 1u);
  maps.ask(0, 1, kOther, kCanvas, 0, kStart);  // another image, other model: maps of their own
  maps.ask(0, 2, kImage, kCanvas, 0, kStart);
  EXPECT_EQ(maps.ask(0, 1, kImage, kCanvas, 0, kStart).done, 4);
  EXPECT_EQ(maps.ask(0, 2, kImage, kCanvas, 0, kStart).done, 0);
}

TEST(PlaceMaps, OldOnesAreForgotten) {
  PlaceMaps maps;
  maps.ask(0, 1, kImage, kCanvas, 0, kStart);
  const auto batch = maps.next(4, kStart);
  for (int64_t version = 2; version < 40; ++version)
    maps.ask(0, version, kImage, kCanvas, 0, kStart);
  maps.add(*batch, cells_of(*batch));  // of a map that is gone
  EXPECT_EQ(maps.ask(0, 1, kImage, kCanvas, 0, kStart).done, 0);
}

}  // namespace
}  // namespace translution::serve
