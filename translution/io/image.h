#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translution/core/export.h"

namespace translution {

/// Red, green and blue, 8 bits each.
struct RgbImage {
  int rows = 0, cols = 0;
  std::vector<uint8_t> pixels;  ///< [rows,cols,3]
};

/// Throws std::invalid_argument if the image is empty or rows x cols does not match `pixels`.
TRANSLUTION_API void check_image(const RgbImage& image);

/// Encodes the image as PNG; returns the bytes of the file.
TRANSLUTION_API std::string encode_png(const RgbImage& image);

}  // namespace translution
