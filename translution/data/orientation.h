#pragma once

#include <string_view>

#include "translution/data/image_file.h"

namespace translution {

/// How a stored picture becomes the one that is shown. Row and column of a pixel that is shown are
/// swapped, if `swapped`; then rows and columns count from the other end of the stored picture.
struct Orientation {
  bool swapped = false, from_bottom = false, from_right = false;

  bool as_stored() const { return !swapped && !from_bottom && !from_right; }
  /// The size that is shown of one that is stored, or the other way round.
  ImageSize size(const ImageSize& other) const;
  /// The box in the stored picture, which has the size `stored`, of one in what is shown.
  Box stored_box(const Box& shown, const ImageSize& stored) const;
  /// From a part of the stored picture to that of the one shown.
  void apply(ImagePart& part) const;
};

/// What EXIF, a TIFF structure, says about how the camera was held. As stored where it says
/// nothing, or nothing that can be understood.
Orientation orientation_of(std::string_view exif);

}  // namespace translution
