#pragma once

#include "translution/data/image_file.h"

namespace translution {

/// `box` of the image at another size, bilinear with antialias: each pixel is the mean of the image
/// around its place, weighted by a triangle that reaches one pixel of the result to each side (or
/// one of the image, where it is enlarged). `mirrored` swaps left and right.
/// The box lies within the image.
RgbImage resample(const RgbImage& image, const Box& box, int rows, int cols, bool mirrored = false);

/// The same from a part of an image; the box is in pixels of the whole. The part has what
/// `box_read` says.
RgbImage resample(const ImagePart& part, const Box& box, int rows, int cols, bool mirrored = false);

/// The box and what may be read around it, which may lie beyond the image. Also holds for the image
/// at a smaller scale, as long as the box has `rows` and `cols` there.
Box box_read(const Box& box, int rows, int cols);

}  // namespace translution
