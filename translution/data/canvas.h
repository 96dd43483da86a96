#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "translution/data/dataset.h"
#include "translution/data/labelled_images.h"
#include "translution/data/options.h"

namespace translution {

struct CanvasOptions {
  int64_t rows = 84;  ///< at least those of the images
  int64_t cols = 84;
  Placement placement = Placement::still;
  uint64_t seed = 0;  ///< decides the places, together with the sample (and the epoch)
};

/// Small grey images, each on a larger black canvas. Inputs are float [B,1,rows,cols], brightness
/// as 0 to 1: a normalisation would make the canvas other than zero and is left to the model's
/// first layer. Every place at which the image lies wholly on the canvas is equally likely; the
/// middle is rounded towards the upper left.
class CanvasDataset : public Dataset {
 public:
  CanvasDataset(LabelledImages images, const CanvasOptions& options);

  int64_t size() const override { return images_.size(); }
  Batch load(const BatchPlan& plan) const override;
  std::vector<std::string> classes() const override;
  std::vector<int64_t> labels() const override { return images_.classes(); }

  /// Row and column of the upper left corner of the image in that epoch.
  std::pair<int64_t, int64_t> place(int64_t epoch, int64_t sample) const;

 private:
  const LabelledImages images_;
  const CanvasOptions options_;
};

}  // namespace translution
