#pragma once

#include <torch/nn/modules/linear.h>

#include "translution/ops/project.h"

namespace translution {

/// The layer's forward through our op.
inline torch::Tensor multiply(const torch::nn::Linear& layer, const torch::Tensor& x,
                              Precision precision) {
  std::vector<torch::Tensor> biases;
  if (layer->bias.defined()) biases.push_back(layer->bias);
  return project(x, {layer->weight}, biases, /*transposed=*/true, precision)[0];
}

}  // namespace translution
