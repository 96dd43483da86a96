#include "translution/report/png.h"

#include <zlib.h>

#include "translution/core/error.h"

namespace translution {
namespace {

constexpr int64_t kLargestSide = 4096;

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

uint32_t crc_of(const std::string& bytes) {
  return crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

std::string chunk(const std::string& type, const std::string& data) {
  return big_endian(data.size()) + type + data + big_endian(crc_of(type + data));
}

std::string header(const Image& image) {
  constexpr char kDepth = 8, kGrey = 0, kRgb = 2;
  std::string data = big_endian(image.cols) + big_endian(image.rows);
  data += kDepth;
  data += image.channels == 1 ? kGrey : kRgb;
  return data + std::string(3, '\0');  // deflate, filters by row, not interlaced
}

// Each row starts with the number of its filter: 0, none.
std::string filtered_rows(const Image& image) {
  std::string rows;
  const int64_t stride = image.cols * image.channels;
  for (int64_t row = 0; row < image.rows; ++row) {
    rows += '\0';
    rows.append(image.pixels.begin() + row * stride, image.pixels.begin() + (row + 1) * stride);
  }
  return rows;
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string packed(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 9);
  ensure(result == Z_OK, "png: zlib failed with code ", result);
  packed.resize(size);
  return packed;
}

}  // namespace

void check_image(const Image& image) {
  const auto fits = [](int64_t side) { return side >= 1 && side <= kLargestSide; };
  require(fits(image.rows) && fits(image.cols) && (image.channels == 1 || image.channels == 3),
          "image: wanted sides from 1 to ", kLargestSide, " and 1 or 3 channels, got ", image.rows,
          "x", image.cols, "x", image.channels);
  const auto wanted = static_cast<size_t>(image.rows * image.cols * image.channels);
  require(image.pixels.size() == wanted, "image: wanted ", wanted, " values for ", image.rows, "x",
          image.cols, "x", image.channels, ", got ", image.pixels.size());
}

std::string png_bytes(const Image& image) {
  check_image(image);
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header(image)) +
         chunk("IDAT", deflated(filtered_rows(image))) + chunk("IEND", "");
}

std::string png_data_uri(const Image& image) {
  return "data:image/png;base64," + base64(png_bytes(image));
}

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = i; j < i + 3; ++j)
      group = group << 8 | (j < bytes.size() ? static_cast<uint8_t>(bytes[j]) : 0u);
    for (int shift = 18; shift >= 0; shift -= 6) text += kDigits[group >> shift & 63];
  }
  // What stands for no byte at all is shown as '='.
  const size_t missing = (3 - bytes.size() % 3) % 3;
  return text.replace(text.size() - missing, missing, missing, '=');
}

}  // namespace translution
