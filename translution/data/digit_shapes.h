#pragma once

#include <vector>

namespace translution {

/// A place that the pen passes. At a corner it stops and turns; elsewhere the curve is smooth.
struct Knot {
  double x, y;  ///< hundredths of the digit's height, y downwards
  bool corner = false;
};

using Stroke = std::vector<Knot>;
/// One way to write a digit.
using Shape = std::vector<Stroke>;

/// The ways to write the digit `label`, 0 to 9.
const std::vector<Shape>& digit_shapes(int label);

}  // namespace translution
