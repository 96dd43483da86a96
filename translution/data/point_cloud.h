#pragma once

#include <cstdint>
#include <vector>

namespace translution {

/// Points with positions and features.
struct PointCloud {
  int64_t axes = 3;              ///< numbers of a position
  int64_t channels = 1;          ///< features of a point
  std::vector<float> positions;  ///< [N,axes]
  std::vector<float> features;   ///< [N,channels]

  int64_t size() const { return static_cast<int64_t>(positions.size()) / axes; }
};

}  // namespace translution
