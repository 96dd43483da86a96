#pragma once

#include <memory>
#include <string>
#include <vector>

#include "translution/core/random.h"
#include "translution/data/broken_files.h"
#include "translution/data/class_folder.h"
#include "translution/data/dataset.h"
#include "translution/data/options.h"

namespace translution {

struct ImageFolderOptions {
  int image_size = 224;
  uint64_t seed = 0;
  Augment augment = Augment::none;    ///< Augment::full gives soft targets
  double max_broken_share = 0.01;     ///< see BrokenFiles; up to 0.5
  BrokenFiles::Report report_broken;  ///< see BrokenFiles
};

/// Images in ImageNet's layout, a ClassFolder with .jpg, .jpeg and .png files.
///
/// load() returns float [B,3,size,size], normalised, and the classes: int64 [B], or float
/// [B,classes] if images are mixed. A sample is a function of (seed, epoch, sample); mixing also
/// depends on the batch index. An image that cannot be read is recorded in broken() and replaced,
/// with its class, by another sample: the first readable one of those drawn from
/// Random({seed, epoch, sample, 1}).
class ImageFolderDataset : public Dataset {
 public:
  ImageFolderDataset(const std::string& folder, const ImageFolderOptions& options);

  int64_t size() const override { return files_.size(); }
  Batch load(const BatchPlan& plan) const override;
  std::vector<std::string> classes() const override { return files_.classes(); }
  std::vector<int64_t> labels() const override { return files_.labels(); }

  std::string path(int64_t sample) const { return files_.path(sample); }
  int64_t class_of(int64_t sample) const { return files_.class_of(sample); }
  const ClassFolder& files() const { return files_; }
  const BrokenFiles& broken() const { return broken_; }

 private:
  bool read_sample(int64_t sample, Random random, float* out) const;
  int64_t fill(int64_t epoch, int64_t sample, float* out) const;

  const ClassFolder files_;
  const ImageFolderOptions options_;
  mutable BrokenFiles broken_;
};

struct ImageFolders {
  std::unique_ptr<ImageFolderDataset> train, val;
};

/// Opens root/train with `options`, and root/val at the same size without augmentation. Throws
/// std::runtime_error if a class exists in only one of them.
ImageFolders open_image_folders(const std::string& root, ImageFolderOptions options);

}  // namespace translution
