#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training_log.h"
#include "translution/io/image.h"
#include "translution/report/report.h"
#include "translution/train/picture.h"

namespace translution::serve {

/// What a page shows of a run beside its pictures.
struct RunFacts {
  std::string name, directory;
  std::string problem;  ///< why there is no model; empty: there is one, and the rest is set
  std::string model, method;
  int64_t step = 0;
  int64_t parameters = 0;
  std::vector<std::string> classes;
  PictureFormat format;
  int64_t rows = 0, cols = 0;  ///< of the grid of patches
  bool cls = false;            ///< has a class token
  int64_t layers = 0, heads = 0;
};

/// Weights of one query over the patches. The class token's own weight is left out.
struct AttentionMaps {
  std::vector<std::vector<std::vector<float>>> weights;  ///< [layers][heads][rows * cols]
  /// Scores of alpha-Translution before the softmax, from the shared matrices and from those of the
  /// offset; the same shape. Layers without both parts are empty; without such layers, all is.
  std::vector<std::vector<std::vector<float>>> shared, relative;
};

/// The prediction for one place of an image.
struct MapCell {
  int32_t place = 0;  ///< row * cols + col
  int32_t best = 0;   ///< the likeliest class
  float probability = 0;
};

/// The predictions for all places of an image on the canvas, as far as they are computed.
struct PlaceMap {
  int64_t rows = 0, cols = 0;  ///< places
  int64_t done = 0;            ///< of rows * cols
  std::vector<MapCell> cells;  ///< those after the ones that the caller knows, in order
};

/// An image of the test set.
struct Sample {
  RgbImage image;
  std::string label;
  int64_t index = 0, count = 0;  ///< among the samples of the set, or of the class asked for
};

/// What request handlers ask for. Every call may come from any thread. Throws Refusal (http.h).
class Models {
 public:
  virtual ~Models() = default;

  virtual std::vector<RunFacts> runs() = 0;
  /// Probabilities of the classes; the picture has the run's format.
  virtual std::vector<float> predict(size_t run, const RgbImage& picture) = 0;
  /// `query` is a patch, or -1 for the class token (without one: the mean of all patches).
  virtual AttentionMaps attend(size_t run, const RgbImage& picture, int64_t query) = 0;
  /// Starts or continues the map of the image in the background. `known` cells are left out.
  virtual PlaceMap map(size_t run, const RgbImage& image, int64_t known) = 0;
  virtual std::vector<ReportNorms> norms(size_t run) = 0;
  /// The sample with this number, counted modulo their number; of a class or of all.
  virtual Sample sample(int64_t index, const std::optional<std::string>& label) = 0;
  virtual TrainingLog log(size_t run) = 0;
};

}  // namespace translution::serve
