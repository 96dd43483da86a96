#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/io/image.h"

namespace translution {

/// Writes images in ImageNet's layout, which `images:DIR` reads: root/split/class/number.png. The
/// directory appears under its name when it is complete; without commit() the destructor removes
/// what was written.
class TRANSLUTION_API ImageFolderWriter {
 public:
  /// Throws std::runtime_error if `root` exists.
  ImageFolderWriter(std::string root, std::vector<std::string> splits,
                    std::vector<std::string> classes);
  ~ImageFolderWriter();
  ImageFolderWriter(const ImageFolderWriter&) = delete;
  ImageFolderWriter& operator=(const ImageFolderWriter&) = delete;

  /// Images of a split are numbered in the order of the calls.
  void add(size_t split, int64_t label, const RgbImage& image);
  void commit();

 private:
  const std::string root_, temporary_;
  const std::vector<std::string> splits_, classes_;
  std::vector<int64_t> written_;  // images of each split
};

}  // namespace translution
