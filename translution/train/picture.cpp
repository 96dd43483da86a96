#include "translution/train/picture.h"

#include "translution/core/error.h"
#include "translution/data/augment.h"
#include "translution/data/image_file.h"
#include "translution/data/resample.h"

namespace translution {

using namespace detail;

RgbImage fit_picture(std::string_view bytes, const std::string& name, const PictureFormat& format) {
  const int rows = static_cast<int>(format.rows), cols = static_cast<int>(format.cols);
  if (format.channels == 3) {
    require(rows == cols, "expected a model of square images, got one of ", rows, "x", cols);
    return evaluation_image(bytes, name, rows);
  }
  const auto image = decode_image(bytes, name);
  return resample(image, {0, 0, static_cast<double>(image.rows), static_cast<double>(image.cols)},
                  rows, cols);
}

void picture_values(const RgbImage& image, int64_t channels, float* to) {
  check_image(image);
  if (channels == 3) return normalise(image, to);
  const uint8_t* from = image.pixels.data();
  const int64_t pixels = int64_t{image.rows} * image.cols;
  for (int64_t p = 0; p < pixels; ++p, from += 3)
    to[p] = static_cast<float>(from[0] + from[1] + from[2]) / (3 * 255);
}

}  // namespace translution
