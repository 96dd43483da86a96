#pragma once

#include "translution/data/image_file.h"

namespace translution {

/// A part of a picture, in its pixels, which may be cut through.
struct Box {
  double top = 0, left = 0, rows = 0, cols = 0;
};

/// `box` of the image at another size, bilinear with antialias: each pixel is the mean of the image
/// around its place, weighted by a triangle that reaches one pixel of the result to each side (or
/// one of the image, where it is enlarged). `mirrored` swaps left and right.
/// The box lies within the image.
RgbImage resample(const RgbImage& image, const Box& box, int rows, int cols, bool mirrored = false);

}  // namespace translution
