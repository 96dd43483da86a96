#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace translution {

/// A small picture: 8 bits per channel, row by row, channels of a pixel together.
struct Image {
  int64_t rows = 0, cols = 0;
  int64_t channels = 1;  ///< 1 for grey, 3 for red, green, blue
  std::vector<uint8_t> pixels;
};

/// Refuses an image whose sizes are not from 1 to 4096 or do not fit its pixels.
void check_image(const Image& image);

/// The image as a PNG file.
std::string png_bytes(const Image& image);
/// The same as "data:image/png;base64,…", for use in a page.
std::string png_data_uri(const Image& image);

std::string base64(const std::string& bytes);

}  // namespace translution
