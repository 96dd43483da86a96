#pragma once

#include <torch/nn/modules/linear.h>

#include "translution/nn/options.h"
#include "translution/ops/project.h"

namespace translution {

/// A linear layer. With Init::none its weights are left as allocated: memory that nobody has
/// touched takes no room, and they are loaded or replaced next.
inline torch::nn::Linear make_linear(int64_t in, int64_t out, Init init, bool bias = true) {
  if (init != Init::none) return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias));
  torch::nn::Linear layer(torch::nn::LinearOptions(1, 1).bias(bias));
  layer->options.in_features(in).out_features(out);
  layer->weight.set_data(torch::empty({out, in}));
  if (bias) layer->bias.set_data(torch::empty({out}));
  return layer;
}

/// The layer's forward through our op.
inline torch::Tensor multiply(const torch::nn::Linear& layer, const torch::Tensor& x,
                              Precision precision) {
  std::vector<torch::Tensor> biases;
  if (layer->bias.defined()) biases.push_back(layer->bias);
  return project(x, {layer->weight}, biases, /*transposed=*/true, precision)[0];
}

}  // namespace translution
