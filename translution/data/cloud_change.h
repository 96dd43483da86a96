#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "translution/core/random.h"
#include "translution/data/options.h"
#include "translution/data/point_cloud.h"

namespace translution {

/// How clouds from files are changed when they are loaded.
struct CloudChange {
  int64_t max_points = 0;              ///< larger clouds are reduced to random points; 0: all
  Rotation rotation = Rotation::none;  ///< a random one for each cloud
  bool redraw = false;                 ///< draws both again in every epoch
};

/// The features nx, ny and nz, a direction that rotates with the points; nothing without them.
std::optional<std::array<size_t, 3>> normals_in(const std::vector<std::string>& features);

/// Keeps `count` random points in their order.
void keep_points(int64_t count, Random& random, PointCloud& cloud);

/// Rotates positions, and normals if there are any, about 0.
void rotate_cloud(Rotation rotation, const std::optional<std::array<size_t, 3>>& normals,
                  Random& random, PointCloud& cloud);

/// Both, as `change` says.
void change_cloud(const CloudChange& change, const std::optional<std::array<size_t, 3>>& normals,
                  Random random, PointCloud& cloud);

}  // namespace translution
