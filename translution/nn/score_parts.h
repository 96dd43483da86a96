#pragma once

#include "translution/core/export.h"
#include "translution/nn/attention.h"

namespace translution {

/// The scores of one query before the softmax, [heads, N] each; an undefined tensor means that the
/// layer has no such part. Their sum is the score of the pair.
struct ScoreParts {
  torch::Tensor shared;    ///< from the matrices that all offsets share
  torch::Tensor relative;  ///< from the matrices of the pair's offset
};

/// The parts of alpha-Translution's scores for query row `query` of x [1,N,dim], in float32. Both
/// are undefined for any other method.
TRANSLUTION_API ScoreParts score_parts(const AttentionImpl& layer, const torch::Tensor& x,
                                       int64_t query);

}  // namespace translution
