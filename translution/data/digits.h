#pragma once

#include <cstdint>

#include "translution/core/random.h"

namespace translution {

/// Rows and columns of a drawn digit, as in MNIST.
inline constexpr int64_t kDigitSide = 28;

/// Writes the digit `label` (0 to 9) by hand, as it were: one of several ways to write it, bent,
/// slanted, turned, with a pen of some width. 28x28 pixels, ink bright on exact black, the digit
/// within about the central 20x20, as MNIST keeps them.
void draw_digit(int label, Random& random, uint8_t* pixels);

}  // namespace translution
