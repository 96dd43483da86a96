#pragma once

#include <memory>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/dataset.h"
#include "translution/data/point_cloud.h"

namespace translution {

/// What a model takes as a cloud.
struct CloudFormat {
  int64_t axes = 3;
  int64_t channels = 1;                    ///< features of a point
  std::vector<std::string> features = {};  ///< their names; empty: not known, or there are none
  int64_t max_points = 0;                  ///< larger clouds keep random points; 0: all
};

/// A cloud of a file.
struct NamedCloud {
  std::string name;    ///< the file; in a file with several clouds also the number, from 1
  std::string target;  ///< as the file has it; empty: not known
  PointCloud cloud;
};

/// Reads the clouds of a file: one from a .ply or .xyz file, or all of a text (parse_cloud_text).
/// An .xyz file needs features that are chemical elements, or one named "charge". Throws
/// std::runtime_error with one line if the file is damaged or has other axes or features.
TRANSLUTION_API std::vector<NamedCloud> read_clouds(const std::string& path,
                                                    const CloudFormat& format);

/// The clouds as data, with targets of 0.
TRANSLUTION_API std::shared_ptr<const Dataset> clouds_as_data(
    const std::vector<NamedCloud>& clouds);

}  // namespace translution
