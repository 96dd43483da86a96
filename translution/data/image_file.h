#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "translution/io/image.h"

namespace translution {

struct ImageSize {
  int rows = 0, cols = 0;
};

/// The size of a JPEG or PNG image as displayed, read from its header alone. The bytes decide the
/// format; `name` is only for messages. Throws std::runtime_error, before allocating memory, for
/// more than 100 megapixels, a side over 65500, or too many pixels for the number of bytes.
ImageSize image_size(std::string_view bytes, const std::string& name);

/// A rectangle of an image, in pixels; its edges may be fractions of a pixel.
struct Box {
  double top = 0, left = 0, rows = 0, cols = 0;
};

/// The decoded part of an image, and its position.
struct ImagePart {
  RgbImage image;
  ImageSize whole;        ///< size of the whole image at the same scale
  int top = 0, left = 0;  ///< upper left corner of the part in it
};

constexpr ImageSize kFullSize{std::numeric_limits<int>::max(), std::numeric_limits<int>::max()};

/// Decodes an image to RGB. Grey, palette and 16-bit images are converted, CMYK is read as Adobe's
/// (inverted), alpha is dropped, and EXIF orientation is applied. A JPEG may be decoded at a half,
/// a quarter or an eighth of its size, which is faster, but never with fewer rows or columns than
/// `at_least`. Throws std::runtime_error with one line that begins with `name` if the data is
/// damaged or truncated.
RgbImage decode_image(std::string_view bytes, const std::string& name,
                      ImageSize at_least = kFullSize);

/// Decodes the pixels that `box` touches; the box is in pixels of the full-size image. These pixels
/// are exactly those of decode_image. `part` may include more pixels around them, whose values need
/// not be exact. Reads all bytes, so damage outside the box is found too. Reuses the memory of
/// `part`.
void decode_part(std::string_view bytes, const std::string& name, ImageSize at_least,
                 const Box& box, ImagePart& part);

RgbImage read_image(const std::string& path);

/// The bytes of an image file, at most 256 MB.
std::string read_image_bytes(const std::string& path);

}  // namespace translution
