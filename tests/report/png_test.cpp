#include "translution/report/png.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "translution/core/random.h"

namespace translution {
namespace {

// CRC-32 as the PNG specification defines it, a bit at a time.
uint32_t slow_crc(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

uint32_t number_at(const std::string& bytes, size_t place) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<uint8_t>(bytes.at(place + i));
  return number;
}

std::string inflated(const std::string& packed, size_t size) {
  std::string bytes(size + 1, '\0');  // one more, to notice what is too long
  uLongf length = bytes.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &length,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  bytes.resize(length);
  return bytes;
}

// Reads a PNG of 8 bits without filters.
Image decode(const std::string& png) {
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  Image image;
  std::string packed, types;
  for (size_t place = 8; place < png.size();) {
    const uint32_t length = number_at(png, place);
    const std::string type = png.substr(place + 4, 4), data = png.substr(place + 8, length);
    EXPECT_EQ(number_at(png, place + 8 + length), slow_crc(type + data));
    types += type;
    if (type == "IHDR") {
      image.cols = number_at(data, 0), image.rows = number_at(data, 4);
      EXPECT_EQ(data[8], 8);
      image.channels = data[9] == 2 ? 3 : 1;
    }
    if (type == "IDAT") packed += data;
    place += 12 + length;
  }
  EXPECT_EQ(types, "IHDRIDATIEND");
  const size_t stride = 1 + image.cols * image.channels;
  const std::string rows = inflated(packed, image.rows * stride);
  EXPECT_EQ(rows.size(), image.rows * stride);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(i % stride != 0 || rows[i] == 0);
    if (i % stride != 0) image.pixels.push_back(static_cast<uint8_t>(rows[i]));
  }
  return image;
}

TEST(Png, DecodesToTheSamePixels) {
  Random random({1});
  for (const int64_t channels : {1, 3})
    for (const auto& [rows, cols] : {std::pair{1, 1}, {84, 84}, {7, 13}, {1, 300}, {257, 2}}) {
      Image image{rows, cols, channels, {}};
      for (int64_t i = 0; i < rows * cols * channels; ++i)
        image.pixels.push_back(random.below(256));
      const Image read = decode(png_bytes(image));
      EXPECT_EQ(read.rows, rows);
      EXPECT_EQ(read.cols, cols);
      EXPECT_EQ(read.channels, channels);
      EXPECT_EQ(read.pixels, image.pixels);
    }
}

TEST(Png, RefusesSizesThatDoNotFit) {
  const int64_t huge = int64_t{1} << 62;
  for (const auto& image :
       {Image{2, 2, 1, std::vector<uint8_t>(5)}, Image{2, 2, 2, std::vector<uint8_t>(8)},
        Image{0, 0, 1, {}}, Image{-1, -1, 1, {1}}, Image{huge, 4, 1, {}}, Image{4, huge, 3, {}}})
    EXPECT_THROW(png_bytes(image), std::invalid_argument);
}

TEST(Png, InAPageIsBase64) {
  // RFC 4648, section 10.
  const std::pair<const char*, const char*> known[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : known) EXPECT_EQ(base64(plain), coded);
  EXPECT_EQ(base64(std::string("\xff\xfe\x00", 3)), "//4A");
  EXPECT_EQ(png_data_uri({1, 1, 1, {7}}).rfind("data:image/png;base64,iVBOR", 0), 0u);
}

}  // namespace
}  // namespace translution
