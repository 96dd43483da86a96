#pragma once

#include <cstdint>

#include "translution/core/random.h"

namespace translution {

/// Height and width of a drawn digit, as in MNIST.
inline constexpr int64_t kDigitSide = 28;

/// Draws a handwritten-looking digit `label` (0 to 9) into 28x28 `pixels`. Picks one of several
/// shapes at random, then a random bend, slant, rotation and pen width. Ink is bright on exact
/// black, and the digit fills about the central 20x20 pixels, as in MNIST.
void draw_digit(int label, Random& random, uint8_t* pixels);

}  // namespace translution
