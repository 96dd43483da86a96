#pragma once

#include "translution/core/random.h"
#include "translution/data/image_file.h"

namespace translution {

enum class AugmentOp {
  auto_contrast,  ///< each channel stretched to 0..255
  equalize,       ///< equalises the histogram of each channel
  invert,
  rotate,        ///< up to 30 degrees, counter-clockwise for a positive level
  posterize,     ///< reduces values to 4 bits (level 0) down to 1 (level 1)
  solarize,      ///< inverts values at or above a threshold, 256 (level 0) down to 0 (level 1)
  solarize_add,  ///< adds up to 110 to values below 128
  colour,        ///< this and the next three: by a factor of 1 + 0.9 * level
  contrast,
  brightness,
  sharpness,
  shear_x,  ///< this and shear_y: by up to 0.3
  shear_y,
  translate_x,  ///< this and translate_y: up to 0.45 of the side; right and down if level > 0
  translate_y
};
constexpr int kAugmentOps = 15;

/// Applies one operation. `level` is -1 to 1: the absolute value is the strength, the sign the
/// direction if the operation has one. Uncovered pixels get ImageNet's mean colour.
void apply_op(RgbImage& image, AugmentOp op, double level);

struct RandAugmentOptions {
  int operations = 2;      ///< drawn per image, each applied with probability 1/2; 0: none
  double magnitude = 9;    ///< mean strength, 0 to 10
  double deviation = 0.5;  ///< standard deviation of the magnitude (normal distribution)
};

void rand_augment(RgbImage& image, const RandAugmentOptions& options, Random& random);

}  // namespace translution
