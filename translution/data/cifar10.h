#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/io/image.h"

namespace translution {

/// A file of CIFAR-10 as scripts/fetch-cifar10 stores it: a PNG of 1024 columns with an image of
/// 32x32 pixels in each row, and the labels of the images in a JSON list.
struct TRANSLUTION_API Cifar10Strip {
  std::vector<int64_t> labels;
  RgbImage pixels;  ///< [images,1024,3]

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  RgbImage image(int64_t index) const;
};

enum class Cifar10Part { train, test };

/// Names of the classes, in the order of the labels.
TRANSLUTION_API const std::vector<std::string>& cifar10_classes();

/// Calls `take` with each strip of a part. Throws std::runtime_error, with the file's path, if one
/// is missing or damaged.
TRANSLUTION_API void read_cifar10(const std::string& directory, Cifar10Part part,
                                  const std::function<void(const Cifar10Strip&)>& take);

}  // namespace translution
