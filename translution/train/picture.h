#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "translution/core/export.h"
#include "translution/io/image.h"

namespace translution {

/// What a model takes as a picture.
struct PictureFormat {
  int64_t channels = 1;  ///< 1: grey, 3: colour
  int64_t rows = 0, cols = 0;
};

/// Decodes the bytes of a JPEG or PNG file and fits the picture to the format. Colour pictures are
/// resized and centre-cropped as in evaluation; grey ones are resized. Throws std::runtime_error
/// with one line that begins with `name` if the data is damaged.
TRANSLUTION_API RgbImage fit_picture(std::string_view bytes, const std::string& name,
                                     const PictureFormat& format);

/// The values of an image of the format as a model's input, [channels,rows,cols]: normalised as in
/// evaluation, or grey from 0 to 1.
TRANSLUTION_API void picture_values(const RgbImage& image, int64_t channels, float* to);

}  // namespace translution
