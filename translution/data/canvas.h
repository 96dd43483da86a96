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
  int64_t rows = 84;  ///< at least as large as the images
  int64_t cols = 84;
  Placement placement = Placement::still;
  uint64_t seed = 0;  ///< of the random placements
};

/// Places small grey images on a larger black canvas. Inputs are float [B,1,rows,cols] from 0 to 1.
/// They are not normalised, so the background stays zero; the model's first layer can learn the
/// scale. A random placement is uniform over all positions where the whole image fits. The centre
/// is rounded towards the upper left.
class CanvasDataset : public Dataset {
 public:
  CanvasDataset(LabelledImages images, const CanvasOptions& options);

  int64_t size() const override { return images_.size(); }
  Batch load(const BatchPlan& plan) const override;
  std::vector<std::string> classes() const override;
  std::vector<int64_t> labels() const override { return images_.classes(); }

  /// Row and column of the image's upper left corner on the canvas in that epoch.
  std::pair<int64_t, int64_t> placement(int64_t epoch, int64_t sample) const;

 private:
  const LabelledImages images_;
  const CanvasOptions options_;
};

}  // namespace translution
