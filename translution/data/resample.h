#pragma once

#include "translution/data/image_file.h"

namespace translution {

/// Resizes `box` of the image to rows x cols, bilinear with antialiasing: each pixel is a weighted
/// mean of the image around its position. The weights form a triangle that reaches one output pixel
/// to each side (one input pixel when enlarging). `mirrored` swaps left and right. The box must lie
/// within the image.
RgbImage resample(const RgbImage& image, const Box& box, int rows, int cols, bool mirrored = false);

/// The same from a part of an image. The box is in pixels of the whole image; the part must cover
/// box_read(box, rows, cols).
RgbImage resample(const ImagePart& part, const Box& box, int rows, int cols, bool mirrored = false);

/// The box extended by all pixels that resample may read; it may extend beyond the image. Also
/// valid for the image at a smaller scale, as long as the box has at least rows x cols pixels
/// there.
Box box_read(const Box& box, int rows, int cols);

}  // namespace translution
