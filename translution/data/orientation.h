#pragma once

#include <string_view>

#include "translution/data/image_file.h"

namespace translution {

/// Maps a stored image to the displayed one. To find a displayed pixel in the stored image, swap
/// its row and column if `swapped`, then count rows from the bottom if `from_bottom` and columns
/// from the right if `from_right`.
struct Orientation {
  bool swapped = false, from_bottom = false, from_right = false;

  bool as_stored() const { return !swapped && !from_bottom && !from_right; }
  /// The displayed size for a stored size, or the reverse.
  ImageSize size(const ImageSize& other) const;
  /// The box in the stored image, of size `stored`, for a box in the displayed image.
  Box stored_box(const Box& shown, const ImageSize& stored) const;
  /// Converts a part of the stored image to a part of the displayed one.
  void apply(ImagePart& part) const;
};

/// The orientation in an EXIF (TIFF) structure; the identity if there is none or it is invalid.
Orientation orientation_of(std::string_view exif);

}  // namespace translution
