#include "translution/data/rand_augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "tests/data/pictures.h"

namespace translution {
namespace {

constexpr int kMeanColour[] = {124, 116, 104};

RgbImage after(RgbImage image, AugmentOp op, double level) {
  apply_op(image, op, level);
  return image;
}

// Checks that the operation maps each of the 256 values v to f(v).
template <typename F>
void expect_maps(AugmentOp op, double level, F f) {
  const RgbImage image = make_image(16, 16, [](int row, int col, int c) {
    return c == 0 ? row * 16 + col : c == 1 ? 255 - row * 16 - col : col * 16 + row;
  });
  const RgbImage result = after(image, op, level);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    ASSERT_EQ(result.pixels[i], f(image.pixels[i])) << int{image.pixels[i]};
}

TEST(AugmentOp, InvertPosterizeAndSolarizeAreExact) {
  expect_maps(AugmentOp::invert, 0.9, [](int v) { return 255 - v; });
  expect_maps(AugmentOp::posterize, 0, [](int v) { return v & 0xF0; });
  expect_maps(AugmentOp::posterize, 0.5, [](int v) { return v & 0xC0; });
  expect_maps(AugmentOp::posterize, -0.9, [](int v) { return v & 0x80; });
  expect_maps(AugmentOp::posterize, 1, [](int v) { return v & 0x80; });
  expect_maps(AugmentOp::solarize, 0, [](int v) { return v; });
  expect_maps(AugmentOp::solarize, 0.5, [](int v) { return v < 128 ? v : 255 - v; });
  expect_maps(AugmentOp::solarize, -0.9, [](int v) { return v < 26 ? v : 255 - v; });
  expect_maps(AugmentOp::solarize_add, 0.5, [](int v) { return v < 128 ? v + 55 : v; });
  expect_maps(AugmentOp::solarize_add, 1, [](int v) { return v < 128 ? v + 110 : v; });
}

TEST(AugmentOp, BrightnessMultiplies) {
  expect_maps(AugmentOp::brightness, 0, [](int v) { return v; });
  const RgbImage image = make_image(16, 16, [](int row, int col, int) { return row * 16 + col; });
  for (const double level : {-1.0, -0.4, 0.5, 1.0}) {
    const RgbImage result = after(image, AugmentOp::brightness, level);
    for (int v = 0; v < 256; ++v)
      ASSERT_NEAR(pixel(result, v / 16, v % 16)[1], std::min(255.0, (1 + 0.9 * level) * v), 0.51);
  }
}

TEST(AugmentOp, ContrastMovesAwayFromTheMeanGrey) {
  // Half 60, half 140: the mean is 100.
  const RgbImage image = make_image(8, 8, [](int, int col, int) { return col < 4 ? 60 : 140; });
  const RgbImage strong = after(image, AugmentOp::contrast, 0.5);
  EXPECT_EQ(pixel(strong, 3, 0)[0], 42);
  EXPECT_EQ(pixel(strong, 3, 7)[2], 158);
  const RgbImage weak = after(image, AugmentOp::contrast, -1);
  EXPECT_EQ(pixel(weak, 3, 0)[0], 96);
  EXPECT_EQ(pixel(weak, 3, 7)[2], 104);
}

TEST(AugmentOp, ColourMovesAwayFromGreyAndLeavesGreyAlone) {
  const RgbImage grey = flat_image(5, 7, 93);
  EXPECT_EQ(after(grey, AugmentOp::colour, 0.9).pixels, grey.pixels);
  const RgbImage red = make_image(5, 7, [](int, int, int c) { return c == 0 ? 160 : 100; });
  const RgbImage vivid = after(red, AugmentOp::colour, 1), pale = after(red, AugmentOp::colour, -1);
  EXPECT_EQ(pixel(vivid, 2, 2)[0], 198);  // grey is 118: 118 + 1.9 * 42
  EXPECT_EQ(pixel(vivid, 2, 2)[1], 84);
  EXPECT_EQ(pixel(pale, 2, 2)[0], 122);
  EXPECT_EQ(pixel(pale, 2, 2)[2], 116);
}

TEST(AugmentOp, AutoContrastReachesBothEndsInEveryChannel) {
  const RgbImage image = make_image(2, 51, [](int, int col, int c) {
    return c == 0 ? 100 + col : c == 1 ? 7 : 2 * col;
  });
  const RgbImage result = after(image, AugmentOp::auto_contrast, 0.9);
  for (int col = 0; col < 51; ++col) {
    EXPECT_EQ(pixel(result, 1, col)[0], std::lround(col * 255 / 50.0));
    EXPECT_EQ(pixel(result, 1, col)[1], 7);
    EXPECT_EQ(pixel(result, 1, col)[2], std::lround(col * 255 / 50.0));
  }
}

TEST(AugmentOp, EqualizeSpreadsValuesByTheirShare) {
  // 10, 11, 12 and 200, a quarter each: three steps of 85.
  const int values[] = {10, 11, 12, 200};
  const RgbImage image =
      make_image(4, 4, [&](int, int col, int c) { return c == 2 ? 50 : values[col]; });
  const RgbImage result = after(image, AugmentOp::equalize, 0.9);
  for (int col = 0; col < 4; ++col) {
    EXPECT_EQ(pixel(result, 3, col)[0], 85 * col);
    EXPECT_EQ(pixel(result, 3, col)[2], 50);
  }
}

TEST(AugmentOp, TranslateMovesByWholePixelsAndFillsWithTheMean) {
  const RgbImage image = varied_image(20, 40);
  const auto expect_moved = [&](AugmentOp op, double level, int down, int right) {
    const RgbImage moved = after(image, op, level);
    for (int row = 0; row < 20; ++row)
      for (int col = 0; col < 40; ++col)
        for (int c = 0; c < 3; ++c) {
          const int i = row - down, j = col - right;
          const bool inside = i >= 0 && i < 20 && j >= 0 && j < 40;
          ASSERT_EQ(pixel(moved, row, col)[c], inside ? pixel(image, i, j)[c] : kMeanColour[c]);
        }
  };
  expect_moved(AugmentOp::translate_x, 1, 0, 18);
  expect_moved(AugmentOp::translate_x, -0.5, 0, -9);
  expect_moved(AugmentOp::translate_y, 1, 9, 0);
  expect_moved(AugmentOp::translate_y, -0.7, -6, 0);
}

// Large images are warped in strips.
TEST(AugmentOp, LargeImagesAreRotatedAsAWhole) {
  RgbImage image = noise_image(700, 900);
  const RgbImage rotated = after(image, AugmentOp::rotate, 0.7);
  cv::Mat whole;
  cv::warpAffine(cv::Mat(700, 900, CV_8UC3, image.pixels.data()), whole,
                 cv::getRotationMatrix2D({449.5f, 349.5f}, 21, 1), {900, 700}, cv::INTER_LINEAR,
                 cv::BORDER_CONSTANT, cv::Scalar(kMeanColour[0], kMeanColour[1], kMeanColour[2]));
  int64_t different = 0;  // OpenCV rounds source coordinates; a few may round differently
  for (size_t i = 0; i < rotated.pixels.size(); ++i)
    different += rotated.pixels[i] != whole.data[i];
  EXPECT_LT(different, 100);
}

struct Point {
  double row, col;
};
// Where the operation moves the centre of mass of a white square of 3x3 pixels on black.
Point centre_after(AugmentOp op, double level, int row, int col) {
  const RgbImage image = make_image(101, 101, [=](int i, int j, int c) {
    return c == 0 && std::abs(i - row) < 2 && std::abs(j - col) < 2 ? 255 : 0;
  });
  const RgbImage moved = after(image, op, level);
  double sum = 0, rows = 0, cols = 0;
  for (int i = 20; i < 81; ++i)  // without the fill colour at the border
    for (int j = 20; j < 81; ++j) {
      const double mass = pixel(moved, i, j)[0] - (pixel(moved, i, j)[1] > 0 ? 255 : 0);
      if (mass <= 0) continue;
      sum += mass, rows += i * mass, cols += j * mass;
    }
  return {rows / sum, cols / sum};
}

TEST(AugmentOp, RotateTurnsCounterClockwiseAboutTheCentre) {
  const Point left = centre_after(AugmentOp::rotate, 1, 50, 70);  // by 30 degrees
  EXPECT_NEAR(left.row, 50 - 20 * 0.5, 0.1);
  EXPECT_NEAR(left.col, 50 + 20 * std::sqrt(0.75), 0.1);
  const Point right = centre_after(AugmentOp::rotate, -1, 50, 70);
  EXPECT_NEAR(right.row, 50 + 20 * 0.5, 0.1);
  const Point middle = centre_after(AugmentOp::rotate, 0.7, 50, 50);
  EXPECT_NEAR(middle.row, 50, 0.05);
  EXPECT_NEAR(middle.col, 50, 0.05);
}

TEST(AugmentOp, ShearMovesEachLineInProportionToItsDistanceFromTheCentre) {
  EXPECT_NEAR(centre_after(AugmentOp::shear_x, 1, 70, 50).col, 50 + 0.3 * 20, 0.1);
  EXPECT_NEAR(centre_after(AugmentOp::shear_x, 1, 30, 50).col, 50 - 0.3 * 20, 0.1);
  EXPECT_NEAR(centre_after(AugmentOp::shear_x, -1, 70, 50).col, 50 - 0.3 * 20, 0.1);
  EXPECT_NEAR(centre_after(AugmentOp::shear_x, 1, 70, 50).row, 70, 0.05);
  EXPECT_NEAR(centre_after(AugmentOp::shear_y, 1, 50, 70).row, 50 + 0.3 * 20, 0.1);
  EXPECT_NEAR(centre_after(AugmentOp::shear_y, 0.5, 50, 70).row, 50 + 0.15 * 20, 0.1);
  EXPECT_NEAR(centre_after(AugmentOp::shear_y, 1, 50, 70).col, 70, 0.05);
}

TEST(AugmentOp, SharpnessSteepensOrSoftensAnEdgeAndLeavesFlatParts) {
  const RgbImage image = make_image(9, 20, [](int, int col, int) { return col < 10 ? 80 : 160; });
  const RgbImage sharp = after(image, AugmentOp::sharpness, 1);
  const RgbImage soft = after(image, AugmentOp::sharpness, -1);
  const auto step = [](const RgbImage& i) { return pixel(i, 4, 10)[1] - pixel(i, 4, 9)[1]; };
  EXPECT_GT(step(sharp), 100);
  EXPECT_LT(step(soft), 60);
  for (const RgbImage& result : {sharp, soft}) {
    EXPECT_EQ(pixel(result, 4, 3)[1], 80);
    EXPECT_EQ(pixel(result, 4, 16)[1], 160);
  }
}

TEST(AugmentOp, EachChangesAnImageAndPreservesItsSize) {
  for (int op = 0; op < kAugmentOps; ++op)
    for (const double level : {-0.9, 0.9}) {
      // Coloured, textured and without black or white, so that every operation has an effect.
      const RgbImage image = make_image(33, 47, [](int row, int col, int c) {
        return 40 + row * 2 + col + 20 * c + (row + col) % 3;
      });
      const RgbImage result = after(image, static_cast<AugmentOp>(op), level);
      EXPECT_EQ(result.rows, 33);
      EXPECT_EQ(result.cols, 47);
      ASSERT_EQ(result.pixels.size(), image.pixels.size());
      EXPECT_NE(result.pixels, image.pixels) << "operation " << op << " level " << level;
    }
}

TEST(AugmentOp, EachAcceptsAnImageOfOnePixel) {
  for (int op = 0; op < kAugmentOps; ++op)
    EXPECT_EQ(after(flat_image(1, 1, 9), static_cast<AugmentOp>(op), 1).pixels.size(), 3u);
}

TEST(RandAugment, AppliesHalfOfItsOperationsAndDependsOnlyOnItsKey) {
  const RgbImage image = varied_image(16, 16);
  int unchanged = 0;
  for (uint64_t key = 0; key < 400; ++key) {
    RgbImage a = image, b = image;
    Random first({key}), second({key});
    rand_augment(a, {}, first);
    rand_augment(b, {}, second);
    ASSERT_EQ(a.pixels, b.pixels);
    unchanged += a.pixels == image.pixels;
  }
  EXPECT_NEAR(unchanged, 100, 40);  // neither of two operations: a quarter of the images
  RgbImage none = image;
  Random random({1});
  rand_augment(none, {0, 9, 0.5}, random);
  EXPECT_EQ(none.pixels, image.pixels);
}

}  // namespace
}  // namespace translution
