#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translution/core/random.h"
#include "translution/data/cloud_dataset.h"
#include "translution/data/labelled_images.h"
#include "translution/data/options.h"

namespace translution {

struct ImagePointsOptions {
  int64_t rows = 84;  ///< of the canvas, in pixels of the images; at least as large as these
  int64_t cols = 84;
  Placement placement = Placement::still;
  bool redraw = false;  ///< draws the points again in every epoch
  bool fresh = false;   ///< draws the placement again in every epoch
  uint64_t seed = 0;
};

/// Small grey images as points on a larger canvas: 64 to 96 of each image, drawn with probabilities
/// proportional to the pixels, each anywhere within its pixel. The feature of a point is the
/// brightness of its pixel, 0 to 1; its position is (row, column), with the upper left corner of
/// the canvas at 0. A sample is a function of (seed, epoch, sample).
class ImagePointsDataset : public CloudDataset {
 public:
  ImagePointsDataset(LabelledImages images, const ImagePointsOptions& options);

  int64_t size() const override { return images_.size(); }
  std::vector<std::string> classes() const override;
  std::vector<int64_t> labels() const override { return images_.classes(); }

 protected:
  CloudSample read(int64_t epoch, int64_t sample) const override;

 private:
  // How an image lies on the canvas: where its upper left corner is, and what happens before.
  struct View {
    double scale = 1, angle = 0;
    double row = 0, col = 0;
  };

  PointCloud draw_points(int64_t sample, Random random) const;
  View draw_view(Random& random) const;
  void place(const View& view, PointCloud& cloud) const;
  void add_clutter(Random& random, PointCloud& cloud) const;

  const LabelledImages images_;
  const ImagePointsOptions options_;
};

}  // namespace translution
