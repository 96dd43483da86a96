#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/dataset.h"
#include "translution/data/options.h"

namespace translution {

struct EvaluationSet {
  std::string name;  ///< "static", "dynamic"
  std::shared_ptr<const Dataset> dataset;
};

/// The data of a run, as the trainer needs it.
struct DataSource {
  std::shared_ptr<const Dataset> train;
  std::vector<EvaluationSet> evaluation;
  std::vector<std::string> classes;
  std::vector<int64_t> image;         ///< rows, cols; empty for text and points
  int64_t channels = 1;               ///< of images, or features of a point
  std::vector<std::string> features;  ///< names of a point's features; may be empty
  int64_t vocabulary = 0;             ///< distinct tokens of text; 0 for images and points
  int64_t axes = 0;                   ///< numbers of a point's position; 0: not points
  /// Targets that are numbers are (number - target_mean) / target_scale, with the mean and standard
  /// deviation of the training part. A scale of 0: targets are classes.
  double target_mean = 0, target_scale = 0;
};

/// Opens the data that `options.data` names. Throws std::invalid_argument for an unknown kind; the
/// message suggests the nearest name.
///
/// The canvas applies to digits and IDX images. If it has the size of the images, all placements
/// are the same, and there is one evaluation set, "static". `digits` has 60000 digits for training
/// and 10000 for evaluation; `digits:N` has N for training and N/5, clamped to 1000 to 10000, for
/// evaluation. No digit is in both. `digits-points` has the same digits as points. Text, and images
/// and points from files, have one evaluation set, "val".
/// `augment` applies to training images only.
///
/// With `hold_out`, that many training images are left out of training. They are the first
/// evaluation set, "held_out", placed as in training and not augmented.
TRANSLUTION_API DataSource open_data(const DataOptions& options);

}  // namespace translution
