#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/io/image.h"

namespace translution {

/// Attention weights of one query over an image or a cloud of points: one map per layer and head.
struct AttentionPicture {
  struct Head {
    int64_t layer, head;          ///< counted from 1
    std::vector<double> weights;  ///< [rows, cols], row by row; or one per point
  };
  struct Point {
    double x, y;  ///< to the right and down
  };

  RgbImage image;
  int64_t rows = 0, cols = 0;  ///< patches
  int64_t query = -1;          ///< query patch or point; -1: the class token
  std::vector<Head> heads;
  std::vector<Point> points = {};  ///< instead of an image and patches
};

/// An SVG picture with a row per layer and a column per head. `id` must be unique in the page.
TRANSLUTION_API std::string svg_attention(const AttentionPicture& picture, const std::string& id);

}  // namespace translution
