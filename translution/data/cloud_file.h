#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "translution/data/cloud_change.h"
#include "translution/data/cloud_dataset.h"
#include "translution/data/cloud_text.h"

namespace translution {

/// Mean and standard deviation of numbers; targets are (number - mean) / scale.
struct TargetScale {
  double mean = 0, scale = 0;
};

/// Throws std::runtime_error if all numbers are equal. Messages begin with `name`.
TargetScale target_scale_of(const std::vector<double>& numbers, const std::string& name);

/// Clouds of a text file, with classes or numbers as targets. A sample is a function of (seed,
/// epoch, sample).
class CloudFileDataset : public CloudDataset {
 public:
  /// `classes` are all classes; `scale` that of the numbers.
  CloudFileDataset(std::shared_ptr<const CloudText> text, std::vector<std::string> classes,
                   const TargetScale& scale, const CloudChange& change, uint64_t seed);

  int64_t size() const override { return static_cast<int64_t>(targets_.size()); }
  std::vector<std::string> classes() const override { return classes_; }
  std::vector<int64_t> labels() const override;

 protected:
  CloudSample read(int64_t epoch, int64_t sample) const override;
  bool targets_are_classes() const override { return text_->targets == CloudTargets::classes; }

 private:
  const std::shared_ptr<const CloudText> text_;
  const std::vector<std::string> classes_;
  const CloudChange change_;
  const uint64_t seed_;
  const std::optional<std::array<size_t, 3>> normals_;
  std::vector<double> targets_;
};

/// The contents of train.txt and val.txt.
struct CloudFiles {
  std::shared_ptr<const CloudText> train, val;
  std::vector<std::string> classes;  ///< those of train.txt in byte order; empty for numbers
  TargetScale scale;                 ///< of the numbers in train.txt
};

/// Reads directory/train.txt and directory/val.txt (parse_cloud_text). Throws std::runtime_error if
/// they differ in axes, features or kind of targets, or if a class is in val.txt alone.
CloudFiles read_cloud_files(const std::string& directory);

}  // namespace translution
