#pragma once

#include <string>
#include <string_view>

#include "translution/io/image.h"
#include "translution/train/picture.h"

namespace translution::serve {

/// An image, and the place of its upper left corner on the canvas.
struct PlacedImage {
  RgbImage image;
  int64_t row = 0, col = 0;
};

/// Reads the body of a request: a JPEG or PNG file, which is fitted to the whole canvas as
/// `translution predict` does, or JSON (docs/serve.md). Throws Refusal.
PlacedImage read_picture(const std::string& body, const PictureFormat& format);

/// The canvas with the image on black.
RgbImage place(const PlacedImage& placed, const PictureFormat& format);

}  // namespace translution::serve
