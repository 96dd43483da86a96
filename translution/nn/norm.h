#pragma once

#include <torch/nn/modules/normalization.h>

#include "translution/ops/layer_norm.h"

namespace translution {

/// The layer's forward through our op.
inline torch::Tensor normalise(const torch::nn::LayerNorm& layer, const torch::Tensor& x) {
  return layer_norm(x, layer->weight, layer->bias, layer->options.eps());
}

}  // namespace translution
