#include "translution/data/resample.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/pictures.h"

namespace translution {
namespace {

Box whole(const RgbImage& image) {
  return {0, 0, static_cast<double>(image.rows), static_cast<double>(image.cols)};
}

TEST(Resample, SameSizeGivesTheSameImage) {
  const RgbImage image = varied_image(13, 29);
  EXPECT_EQ(resample(image, whole(image), 13, 29).pixels, image.pixels);
}

TEST(Resample, BoxOfIntegerPixelsIsCopied) {
  const RgbImage image = varied_image(13, 29);
  const RgbImage cut = resample(image, {2, 5, 7, 11}, 7, 11);
  for (int row = 0; row < 7; ++row)
    for (int col = 0; col < 11; ++col)
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(pixel(cut, row, col)[c], pixel(image, row + 2, col + 5)[c]);
}

TEST(Resample, HalvingUsesWeightsOneThreeThreeOneEighths) {
  const RgbImage image = make_image(8, 8, [](int row, int col, int c) {
    return c == 0 ? (col % 5) * 8 : c == 1 ? (row * row % 7) * 8 : 0;
  });
  const RgbImage half = resample(image, whole(image), 4, 4);
  const auto red = [](int col) { return (col % 5) * 8; };
  const auto green = [](int row) { return (row * row % 7) * 8; };
  for (int i = 1; i < 3; ++i) {
    const int x = 2 * i - 1;  // the first of the four
    EXPECT_EQ(pixel(half, 1, i)[0], (red(x) + 3 * red(x + 1) + 3 * red(x + 2) + red(x + 3)) / 8);
    EXPECT_EQ(pixel(half, i, 1)[1],
              (green(x) + 3 * green(x + 1) + 3 * green(x + 2) + green(x + 3)) / 8);
  }
}

TEST(Resample, EnlargingIsLinearBetweenPixels) {
  const RgbImage image = make_image(1, 2, [](int, int col, int) { return col * 100; });
  const RgbImage wide = resample(image, whole(image), 3, 4);
  const int expected[] = {0, 25, 75, 100};
  for (int row = 0; row < 3; ++row)
    for (int col = 0; col < 4; ++col) EXPECT_EQ(pixel(wide, row, col)[1], expected[col]);
}

TEST(Resample, OfABoxIsThatPartOfTheWholeResult) {
  const RgbImage image = varied_image(75, 50);
  const RgbImage all = resample(image, whole(image), 45, 30);
  const double step = 75.0 / 45;
  const RgbImage part = resample(image, {10 * step, 4 * step, 20 * step, 15 * step}, 20, 15);
  for (int row = 0; row < 20; ++row)
    for (int col = 0; col < 15; ++col)
      for (int c = 0; c < 3; ++c)
        ASSERT_NEAR(pixel(part, row, col)[c], pixel(all, row + 10, col + 4)[c], 1);
}

TEST(Resample, MirroredSwapsLeftAndRight) {
  const RgbImage image = varied_image(31, 47);
  const Box box{3.5, 2.25, 20, 40};
  const RgbImage plain = resample(image, box, 9, 13), mirrored = resample(image, box, 9, 13, true);
  for (int row = 0; row < 9; ++row)
    for (int col = 0; col < 13; ++col)
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(pixel(mirrored, row, col)[c], pixel(plain, row, 12 - col)[c]);
}

TEST(Resample, FlatImagesStayFlatAtAnySize) {
  for (const uint8_t value : {0, 1, 128, 255})
    for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 300}, {37, 2}, {200, 151}})
      for (const int side : {1, 2, 7, 64}) {
        const RgbImage image = flat_image(rows, cols, value);
        EXPECT_EQ(resample(image, whole(image), side, side).pixels,
                  flat_image(side, side, value).pixels);
      }
}

// The definition, pixel by pixel, in double precision.
double expected(const RgbImage& image, const Box& box, int rows, int cols, int row, int col,
                int c) {
  const double down = box.rows / rows, across = box.cols / cols;
  const double y = box.top + (row + 0.5) * down, x = box.left + (col + 0.5) * across;
  double sum = 0, weights = 0;
  for (int i = 0; i < image.rows; ++i)
    for (int j = 0; j < image.cols; ++j) {
      const double v = std::max(0.0, 1 - std::abs(i + 0.5 - y) / std::max(down, 1.0));
      const double h = std::max(0.0, 1 - std::abs(j + 0.5 - x) / std::max(across, 1.0));
      sum += v * h * pixel(image, i, j)[c];
      weights += v * h;
    }
  return sum / weights;
}

TEST(Resample, IsTheWeightedMeanOfItsDefinition) {
  const RgbImage image = varied_image(37, 41);
  for (const Box& box : {Box{0, 0, 37, 41}, Box{1.3, 7.9, 30.2, 11.1}, Box{30, 2, 7, 39}})
    for (const auto& [rows, cols] : {std::pair{5, 60}, {19, 13}, {1, 1}}) {
      const RgbImage result = resample(image, box, rows, cols);
      for (int row = 0; row < rows; ++row)
        for (int col = 0; col < cols; ++col)
          for (int c = 0; c < 3; ++c)
            ASSERT_NEAR(pixel(result, row, col)[c], expected(image, box, rows, cols, row, col, c),
                        0.501);
    }
}

}  // namespace
}  // namespace translution
