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

/// std::invalid_argument for an image without pixels, or whose sizes do not fit them.
TRANSLUTION_API void check_image(const RgbImage& image);

/// The image as a PNG file.
TRANSLUTION_API std::string encode_png(const RgbImage& image);

}  // namespace translution
