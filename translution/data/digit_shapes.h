#pragma once

#include <vector>

namespace translution {

/// A point on the path of the pen. The curve is smooth except at corners.
struct Knot {
  double x, y;  ///< in hundredths of the digit's height; y points down
  bool corner = false;
};

using Stroke = std::vector<Knot>;
/// One way to write a digit.
using Shape = std::vector<Stroke>;

/// The ways to write the digit `label`, 0 to 9.
const std::vector<Shape>& digit_shapes(int label);

}  // namespace translution
