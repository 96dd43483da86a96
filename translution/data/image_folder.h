#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "translution/core/random.h"
#include "translution/data/dataset.h"
#include "translution/data/options.h"

namespace translution {

/// Records the images of a folder that could not be read. Thread-safe.
class BrokenImages {
 public:
  using Report = std::function<void(const std::string& line)>;

  /// At most floor(images * max_share) images may be broken: of 25 images, none for 0.01 and one
  /// for 0.04. `report`, if set, is called once per broken image, by one thread at a time.
  BrokenImages(std::string folder, int64_t images, double max_share, Report report);

  bool has(int64_t image) const;
  /// Records a broken image and the line that says why. Throws std::runtime_error if there are too
  /// many.
  void add(int64_t image, const std::string& why);
  /// The lines so far, in order of arrival.
  std::vector<std::string> lines() const;

 private:
  const std::string folder_;
  const int64_t images_, allowed_;
  const Report report_;
  mutable std::mutex mutex_;
  std::unordered_set<int64_t> recorded_;
  std::vector<std::string> lines_;
};

struct ImageFolderOptions {
  int image_size = 224;
  uint64_t seed = 0;
  Augment augment = Augment::none;     ///< Augment::full gives soft targets
  double max_broken_share = 0.01;      ///< see BrokenImages; up to 0.5
  BrokenImages::Report report_broken;  ///< see BrokenImages
};

/// Images in ImageNet's layout: folder/<class>/<any name>.jpg, .jpeg or .png. Classes are numbered
/// by name in byte order, samples by class and then by name. Hidden files and other file extensions
/// are ignored.
///
/// load() returns float [B,3,size,size], normalised, and the classes: int64 [B], or float
/// [B,classes] if images are mixed. A sample is a function of (seed, epoch, sample); mixing also
/// depends on the batch index. An image that cannot be read is recorded in broken() and replaced,
/// with its class, by another sample: the first readable one of those drawn from
/// Random({seed, epoch, sample, 1}).
class ImageFolderDataset : public Dataset {
 public:
  /// Throws std::runtime_error if the folder is missing, has no classes, or a class has no images.
  ImageFolderDataset(const std::string& folder, const ImageFolderOptions& options);

  int64_t size() const override { return files_.size(); }
  Batch load(const BatchPlan& plan) const override;
  std::vector<std::string> classes() const override { return classes_; }
  std::vector<int64_t> labels() const override;

  std::string path(int64_t sample) const;
  int64_t class_of(int64_t sample) const { return files_.at(sample).label; }
  const std::string& folder() const { return folder_; }
  const BrokenImages& broken() const { return *broken_; }

 private:
  struct File {
    int64_t label;
    std::string name;
  };

  void scan_class(const std::string& name);
  bool read_sample(int64_t sample, Random random, float* out) const;
  int64_t fill(int64_t epoch, int64_t sample, float* out) const;

  const std::string folder_;
  const ImageFolderOptions options_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
  std::unique_ptr<BrokenImages> broken_;
};

struct ImageFolders {
  std::unique_ptr<ImageFolderDataset> train, val;
};

/// Opens root/train with `options`, and root/val at the same size without augmentation. Throws
/// std::runtime_error if a class exists in only one of them.
ImageFolders open_image_folders(const std::string& root, ImageFolderOptions options);

}  // namespace translution
