#include "translution/data/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/data/pictures.h"

namespace translution {
namespace {

TEST(CentreCrop, IsTheCentreAfterResizingTheShorterSideToEightSeventhsOfTheSize) {
  const Box box = centre_crop({375, 500}, 224);  // resized to 256 x 341, crop starts at 16, 58
  EXPECT_DOUBLE_EQ(box.top, 16 * 375 / 256.0);
  EXPECT_DOUBLE_EQ(box.left, 58 * 500 / 341.0);
  EXPECT_DOUBLE_EQ(box.rows, 224 * 375 / 256.0);
  EXPECT_DOUBLE_EQ(box.cols, 224 * 500 / 341.0);
}

TEST(CentreCrop, LiesWithinEveryImage) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 1000}, {999, 2}, {17, 19}, {4000, 3000}})
    for (const int size : {1, 7, 32, 224, 385}) {
      const Box box = centre_crop({rows, cols}, size);
      EXPECT_GE(box.top, 0);
      EXPECT_GE(box.left, 0);
      EXPECT_LE(box.top + box.rows, rows + 1e-9);
      EXPECT_LE(box.left + box.cols, cols + 1e-9);
    }
}

TEST(EvaluationImage, CopiesPixelsIfTheScaleIsOne) {
  const RgbImage image = varied_image(64, 80);  // 56 * 256 / 224 = 64
  const RgbImage seen = evaluation_image(encode_png(image), "a.png", 56);
  ASSERT_EQ(seen.rows, 56);
  ASSERT_EQ(seen.cols, 56);
  for (int row = 0; row < 56; ++row)
    for (int col = 0; col < 56; ++col)
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(pixel(seen, row, col)[c], pixel(image, row + 4, col + 12)[c]);
}

TEST(EvaluationImage, ShowsTheSameRegionFromAHalfSizeJpeg) {
  // Brightness rises linearly from left to right, so each value reveals its column.
  const RgbImage image = make_image(1024, 1536, [](int, int col, int) { return col / 6; });
  const RgbImage exact = evaluation_image(encode_png(image), "a.png", 224);
  const RgbImage seen = evaluation_image(to_jpeg(image, Chroma::quarter, 98), "a.jpg", 224);
  for (size_t i = 0; i < seen.pixels.size(); ++i) ASSERT_NEAR(seen.pixels[i], exact.pixels[i], 2);
}

TEST(RandomCrop, LiesWithinTheImageWithAreaAndRatioInRange) {
  double smallest = 1, largest = 0;
  for (uint64_t key = 0; key < 3000; ++key) {
    Random random({key});
    const Box box = random_crop({375, 500}, random);
    ASSERT_TRUE(box.top >= 0 && box.top + box.rows <= 375);
    ASSERT_TRUE(box.left >= 0 && box.left + box.cols <= 500);
    const double share = box.rows * box.cols / (375.0 * 500), ratio = box.cols / box.rows;
    ASSERT_TRUE(share > 0.078 && share <= 1) << share;
    ASSERT_TRUE(ratio > 0.74 && ratio < 1.35) << ratio;
    smallest = std::min(smallest, share);
    largest = std::max(largest, share);
  }
  EXPECT_LT(smallest, 0.1);
  EXPECT_GT(largest, 0.95);
}

TEST(RandomCrop, IsTheCentreOfAVeryLongImage) {
  Random random({1});
  const Box box = random_crop({3, 1000}, random);
  EXPECT_EQ(box.rows, 3);
  EXPECT_EQ(box.cols, 4);
  EXPECT_EQ(box.left, 498);
  const Box one = random_crop({1, 1}, random);
  EXPECT_EQ(one.rows * one.cols, 1);
}

TEST(TrainingImage, DependsOnlyOnItsKeyAndFlipsHalfOfTheImages) {
  // Brightness rises to the right; in a flipped image it falls.
  const std::string png =
      encode_png(make_image(50, 50, [](int row, int col, int) { return 20 + col * 4 + row % 7; }));
  int flipped = 0;
  std::set<std::vector<uint8_t>> different;
  for (uint64_t key = 0; key < 200; ++key) {
    Random first({key}), second({key});
    const RgbImage a = training_image(png, "a.png", 24, {0, 0, 0}, first);
    EXPECT_EQ(a.pixels, training_image(png, "a.png", 24, {0, 0, 0}, second).pixels);
    flipped += pixel(a, 12, 0)[0] > pixel(a, 12, 23)[0];
    different.insert(a.pixels);
  }
  EXPECT_NEAR(flipped, 100, 30);
  EXPECT_GT(different.size(), 190u);
}

// A PNG is always decoded whole, so it gives the crop of the whole image.
TEST(TrainingImage, FromAPartOfAJpegEqualsFromTheWhole) {
  for (const Chroma chroma :
       {Chroma::full, Chroma::half_cols, Chroma::half_rows, Chroma::quarter, Chroma::none})
    for (const bool progressive : {false, true}) {
      const std::string jpeg = to_jpeg(noise_image(117, 151), chroma, 90, progressive);
      const std::string png = encode_png(decode_image(jpeg, "a.jpg"));
      for (const int size : {60, 112, 200}) {
        ASSERT_EQ(evaluation_image(jpeg, "a.jpg", size).pixels,
                  evaluation_image(png, "a.png", size).pixels);
        for (uint64_t key = 0; key < 30; ++key) {
          Random first({key}), second({key});
          ASSERT_EQ(training_image(jpeg, "a.jpg", size, {0, 0, 0}, first).pixels,
                    training_image(png, "a.png", size, {0, 0, 0}, second).pixels)
              << "size " << size << ", key " << key;
        }
      }
    }
}

TEST(TrainingImage, FromAPartOfAJpegEqualsFromTheWholeAtEverySmallerScale) {
  constexpr int kRows = 320, kCols = 400;
  const std::string jpeg = to_jpeg(noise_image(kRows, kCols), Chroma::quarter, 90);
  for (const int divisor : {2, 4, 8}) {
    const ImageSize at_least{kRows / divisor, kCols / divisor};
    const RgbImage whole = decode_image(jpeg, "a.jpg", at_least);
    for (uint64_t key = 0; key < 60; ++key) {
      Random random({key});
      const Box box = random_crop({kRows, kCols}, random);
      const Box scaled{box.top / divisor, box.left / divisor, box.rows / divisor,
                       box.cols / divisor};
      // The largest size for this scale, and a small one.
      for (const int size : {static_cast<int>(std::min(scaled.rows, scaled.cols)), 5}) {
        ImagePart part;
        decode_part(jpeg, "a.jpg", at_least, box_read(box, size, size), part);
        ASSERT_EQ(resample(part, scaled, size, size).pixels,
                  resample(whole, scaled, size, size).pixels)
            << "divisor " << divisor << ", key " << key << ", size " << size;
      }
    }
  }
}

TEST(Normalise, UsesImageNetsMeanAndStandardDeviation) {
  const RgbImage image = varied_image(5, 9);
  std::vector<float> planes(3 * 5 * 9);
  normalise(image, planes.data());
  const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
  for (int c = 0; c < 3; ++c)
    for (int row = 0; row < 5; ++row)
      for (int col = 0; col < 9; ++col)
        ASSERT_NEAR(planes[(c * 5 + row) * 9 + col],
                    (pixel(image, row, col)[c] / 255.0 - mean[c]) / deviation[c], 1e-6);
}

}  // namespace
}  // namespace translution
