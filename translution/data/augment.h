#pragma once

#include <string>
#include <string_view>

#include "translution/core/random.h"
#include "translution/data/image_file.h"
#include "translution/data/rand_augment.h"
#include "translution/data/resample.h"

namespace translution {

/// The crop for evaluation: the central `size` x `size` square after the shorter side is resized to
/// size * 256 / 224. The box is in pixels of the original image.
Box centre_crop(const ImageSize& picture, int size);

/// The crop for training: 8 to 100 % of the area, aspect ratio 3:4 to 4:3, anywhere in the image.
/// After ten draws that do not fit, the largest central crop whose ratio is in that range.
Box random_crop(const ImageSize& picture, Random& random);

/// Decodes the bytes of an image file, and crops and resizes to `size` x `size` pixels.
RgbImage evaluation_image(std::string_view bytes, const std::string& name, int size);
/// The same with a random crop, a flip with probability 1/2, then RandAugment.
RgbImage training_image(std::string_view bytes, const std::string& name, int size,
                        const RandAugmentOptions& options, Random& random);

/// Scales to 0..1, subtracts ImageNet's mean and divides by its standard deviation, per channel.
/// `out` is [3,rows,cols].
void normalise(const RgbImage& image, float* out);

}  // namespace translution
