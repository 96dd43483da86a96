#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "translution/data/point_cloud.h"

namespace translution {

/// What a text says of each cloud: its class, a number, or nothing.
enum class CloudTargets { classes, numbers, none };

/// Clouds of points and their targets, from a text file.
struct CloudText {
  int64_t axes = 0;
  CloudTargets targets = CloudTargets::none;
  std::vector<std::string> features;  ///< names; may be empty
  std::vector<PointCloud> clouds;     ///< without features, each point has one feature of 1
  std::vector<std::string> classes;   ///< of the clouds
  std::vector<double> numbers;        ///< of the clouds
};

/// Parses a text such as
///
///     axes 3
///     targets numbers       # or: targets classes, targets none
///     features H C          # may be left out
///     cloud -417.031 2      # target, number of points; without targets: cloud 2
///     0.00 0 0  0 1         # position, features
///     1.09 0 0  1 0
///
/// What follows a '#' is a comment. Throws std::runtime_error with the line if the text is
/// something else, or if a number is not finite. Messages begin with `name`.
CloudText parse_cloud_text(std::string_view text, const std::string& name);

}  // namespace translution
