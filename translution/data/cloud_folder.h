#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "translution/data/broken_files.h"
#include "translution/data/class_folder.h"
#include "translution/data/cloud_change.h"
#include "translution/data/cloud_dataset.h"

namespace translution {

struct CloudFolderOptions {
  CloudChange change;
  uint64_t seed = 0;
  double max_broken_share = 0.01;     ///< see BrokenFiles
  BrokenFiles::Report report_broken;  ///< see BrokenFiles
};

/// PLY files in a ClassFolder. The features are the vertices' properties besides x, y and z, which
/// all files share; parse_ply says how values are read. A sample is a function of (seed, epoch,
/// sample). A file that cannot be read is recorded in broken() and replaced, with its class, by
/// another: the first readable one of those drawn from Random({seed, epoch, sample, 1}).
class CloudFolderDataset : public CloudDataset {
 public:
  /// Reads the header of every file. Throws std::runtime_error if a file has other features than
  /// the first one or, if given, than `features`.
  CloudFolderDataset(const std::string& folder, const CloudFolderOptions& options,
                     std::optional<std::vector<std::string>> features = {});

  int64_t size() const override { return files_.size(); }
  std::vector<std::string> classes() const override { return files_.classes(); }
  std::vector<int64_t> labels() const override { return files_.labels(); }

  const ClassFolder& files() const { return files_; }
  const BrokenFiles& broken() const { return broken_; }
  const std::vector<std::string>& features() const { return *features_; }

 protected:
  CloudSample read(int64_t epoch, int64_t sample) const override;

 private:
  void check_features(int64_t sample);
  std::optional<PointCloud> read_file_of(int64_t sample) const;

  const ClassFolder files_;
  const CloudFolderOptions options_;
  mutable BrokenFiles broken_;
  std::optional<std::vector<std::string>> features_;
  std::optional<std::array<size_t, 3>> normals_;
};

struct CloudFolders {
  std::unique_ptr<CloudFolderDataset> train, val;
};

/// Opens root/train with `options`, and root/val without rotation and always with the same points.
/// Throws std::runtime_error if they have other classes or features.
CloudFolders open_cloud_folders(const std::string& root, CloudFolderOptions options);

}  // namespace translution
