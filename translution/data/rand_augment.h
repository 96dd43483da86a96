#pragma once

#include "translution/core/random.h"
#include "translution/data/image_file.h"

namespace translution {

enum class AugmentOp {
  auto_contrast,  ///< each channel stretched to 0..255
  equalize,       ///< each channel with as many pixels at every brightness, as far as possible
  invert,
  rotate,        ///< up to 30 degrees, counter-clockwise for a positive level
  posterize,     ///< keeps 4 bits down to 1
  solarize,      ///< inverts what is at least as bright as 256 down to 0
  solarize_add,  ///< adds up to 110 to what is darker than 128
  colour,        ///< these four: 0.9 stronger or weaker, by the sign of the level
  contrast,
  brightness,
  sharpness,
  shear_x,  ///< these two: by up to 0.3
  shear_y,
  translate_x,  ///< these two: by up to 0.45 of the side, right and down for a positive level
  translate_y
};
constexpr int kAugmentOps = 15;

/// Applies one operation. `level` is from -1 to 1: the strength, and the direction where there is
/// one. What comes in at the border has ImageNet's mean colour.
void apply_op(RgbImage& image, AugmentOp op, double level);

struct RandAugmentOptions {
  int operations = 2;      ///< drawn for each picture, each then done with probability 1/2; 0: none
  double magnitude = 9;    ///< of 10
  double deviation = 0.5;  ///< of the magnitude, which is drawn from a normal distribution
};

void rand_augment(RgbImage& image, const RandAugmentOptions& options, Random& random);

}  // namespace translution
