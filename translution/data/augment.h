#pragma once

#include <string>
#include <string_view>

#include "translution/core/random.h"
#include "translution/data/image_file.h"
#include "translution/data/rand_augment.h"
#include "translution/data/resample.h"

namespace translution {

/// What evaluation sees: a square of `size` pixels from the middle of the picture, once its shorter
/// side has size * 256 / 224. The box is in pixels of the picture as it is.
Box centre_crop(const ImageSize& picture, int size);

/// What training sees: 8 to 100 % of the area with a ratio of 3:4 to 4:3, anywhere; the largest
/// middle part of such a ratio if ten draws do not fit.
Box random_crop(const ImageSize& picture, Random& random);

/// The transforms, from the bytes of a file to a square of `size` pixels.
RgbImage evaluation_image(std::string_view bytes, const std::string& name, int size);
/// Random crop, flip with probability 1/2, then RandAugment.
RgbImage training_image(std::string_view bytes, const std::string& name, int size,
                        const RandAugmentOptions& options, Random& random);

/// Scales to 0..1, subtracts ImageNet's mean and divides by its deviation, per channel.
/// `out` is [3,rows,cols].
void normalise(const RgbImage& image, float* out);

}  // namespace translution
