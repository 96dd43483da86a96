#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "translution/io/image.h"

namespace translution {

struct ImageSize {
  int rows = 0, cols = 0;
};

/// The size of a JPEG or PNG picture as it is shown, read from its header alone. What the bytes are
/// is seen from them, not from `name`, which serves messages. Refused, before any memory is taken:
/// more than 100 megapixels, a side over 65500, and more pixels than so few bytes plausibly hold.
ImageSize image_size(std::string_view bytes, const std::string& name);

/// A part of a picture, in its pixels, which may be cut through.
struct Box {
  double top = 0, left = 0, rows = 0, cols = 0;
};

/// What has been decoded of a picture, and where it lies.
struct ImagePart {
  RgbImage image;
  ImageSize whole;        ///< the picture's size at the scale of the image
  int top = 0, left = 0;  ///< where the image begins in it
};

constexpr ImageSize kFullSize{std::numeric_limits<int>::max(), std::numeric_limits<int>::max()};

/// The picture as RGB: grey, palette and 16 bits are converted, CMYK is taken as Adobe's
/// (inverted), alpha is dropped, and it is turned as EXIF says. A JPEG may
/// come at a half, a quarter or an eighth of its size, which is faster, but never with fewer rows
/// or cols than `at_least`. std::runtime_error with one line that begins with `name` for whatever
/// is damaged, missing ends included.
RgbImage decode_image(std::string_view bytes, const std::string& name,
                      ImageSize at_least = kFullSize);

/// The same of the pixels that `box` touches, a box in the picture at its full size. They are
/// exactly those of the whole picture; more may come around them, which need not be. All bytes are
/// read, so that damage is found outside the box too. The memory of `part` serves again.
void decode_part(std::string_view bytes, const std::string& name, ImageSize at_least,
                 const Box& box, ImagePart& part);

RgbImage read_image(const std::string& path);

/// The bytes of an image file, at most 256 MB.
std::string read_image_bytes(const std::string& path);

}  // namespace translution
