#include "translution/io/image.h"

#include <gtest/gtest.h>

#include "tests/data/pictures.h"

namespace translution {
namespace {

// image_file_test.cpp checks decoding with PNG files that are built byte by byte.
TEST(EncodePng, DecodesToTheSamePixels) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {84, 84}, {7, 13}, {1, 300}, {257, 2}}) {
    const RgbImage image = noise_image(rows, cols), read = decode_image(encode_png(image), "a.png");
    EXPECT_EQ(read.rows, rows);
    EXPECT_EQ(read.cols, cols);
    EXPECT_EQ(read.pixels, image.pixels);
  }
}

TEST(EncodePng, GivesTheSameBytesForTheSameImage) {
  EXPECT_EQ(encode_png(varied_image(84, 84)), encode_png(varied_image(84, 84)));
}

TEST(EncodePng, RefusesSizesThatDoNotMatchThePixels) {
  const int huge = std::numeric_limits<int>::max();
  for (const auto& image :
       {RgbImage{2, 2, std::vector<uint8_t>(5)}, RgbImage{2, 2, std::vector<uint8_t>(4)},
        RgbImage{0, 0, {}}, RgbImage{-1, -1, {1, 2, 3}}, RgbImage{huge, 4, {}},
        RgbImage{4, huge, {}}, RgbImage{huge, huge, {}}})
    EXPECT_THROW(encode_png(image), std::invalid_argument);
}

}  // namespace
}  // namespace translution
