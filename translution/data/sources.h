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

/// All that the trainer has to know about its data.
struct DataSource {
  std::shared_ptr<const Dataset> train;
  std::vector<EvaluationSet> evaluation;
  std::vector<std::string> classes;
  std::vector<int64_t> image;  ///< rows, cols
  int64_t channels = 1;
  int64_t vocabulary = 0;  ///< distinct tokens of text; 0: images
};

/// Opens what `options.data` names. An unknown kind: one line with the nearest known one.
///
/// The canvas concerns digits and IDX images. On one that is no larger than the image all
/// placements are the same, and there is one evaluation set, "static".
/// `digits` has 60000 digits for training and 10000 for evaluation, `digits:N` has N, and a fifth
/// of that (1000 to 10000) for evaluation; no digit is in both. Text and image folders have one
/// evaluation set, "val"; images are augmented for training, as `augment` says, and never for
/// evaluation.
///
/// With `hold_out`, that many training images are left out of training. They are the first
/// evaluation set, "held_out", placed as in training and not augmented.
TRANSLUTION_API DataSource open_data(const DataOptions& options);

}  // namespace translution
