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

/// The images of a folder that could not be read. Safe to use from several threads.
class BrokenImages {
 public:
  using Report = std::function<void(const std::string& line)>;

  /// Of `images`, at most the share `most` may be broken: of 25 none for 0.01, and one for 0.04.
  /// `report`, where there is one, is called once per image, by one thread at a time.
  BrokenImages(std::string folder, int64_t images, double most, Report report);

  bool has(int64_t image) const;
  /// Notes an image with the line that says why; std::runtime_error where it is one too many.
  void add(int64_t image, const std::string& why);
  /// The lines so far, in the order in which they came.
  std::vector<std::string> lines() const;

 private:
  const std::string folder_;
  const int64_t images_, allowed_;
  const Report report_;
  mutable std::mutex mutex_;
  std::unordered_set<int64_t> images_noted_;
  std::vector<std::string> lines_;
};

struct ImageFolderOptions {
  int image_size = 224;
  uint64_t seed = 0;
  Augment augment = Augment::none;     ///< Augment::full has soft targets
  double max_broken_share = 0.01;      ///< see BrokenImages; up to 0.5
  BrokenImages::Report report_broken;  ///< see BrokenImages
};

/// Images as ImageNet keeps them: folder/<class>/<any name>.jpg, .jpeg or .png. Classes are
/// numbered in the order of their names' bytes, samples by class and then by name. Hidden files and
/// those with other endings are ignored.
///
/// load() gives float [B,3,size,size], normalised, and the classes: int64 [B], or float [B,classes]
/// where images are mixed. A sample is a function of
/// (seed, epoch, sample), a mixture also of the batch's index. An image that cannot be read is
/// noted in broken(), and its place goes to the first that can be read of the samples drawn from
/// Random({seed, epoch, sample, 1}), with that one's class.
class ImageFolderDataset : public Dataset {
 public:
  /// One line with the folder where it is missing or has no classes, or a class has no images.
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

/// root/train as `options` say, and root/val for evaluation at the same size, which is never
/// augmented; one line that names a class which only one of them has.
ImageFolders open_image_folders(const std::string& root, ImageFolderOptions options);

}  // namespace translution
