#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/io/image.h"

namespace translution {

/// One map of weights per layer and head, laid over the image that was looked at.
struct AttentionPicture {
  struct Head {
    int64_t layer, head;          ///< counted from 1
    std::vector<double> weights;  ///< rows x cols
  };

  RgbImage image;
  int64_t rows = 0, cols = 0;  ///< patches
  int64_t query = -1;          ///< patch that looks; -1: the class token
  std::vector<Head> heads;
};

/// Layers downwards, heads to the right. `id` has to be unique in the page.
TRANSLUTION_API std::string svg_attention(const AttentionPicture& picture, const std::string& id);

}  // namespace translution
