#pragma once

#include <torch/nn/modules/linear.h>

#include <cmath>

#include "translution/nn/options.h"
#include "translution/ops/compat.h"
#include "translution/ops/project.h"

namespace translution {

/// A linear layer, initialised as LibTorch's. Random numbers come from `generator`, or from
/// LibTorch's default generator if it is undefined. With Init::none the weights are not
/// initialised, because they are loaded or replaced next; untouched pages take no memory.
inline torch::nn::Linear make_linear(int64_t in, int64_t out, Init init,
                                     const at::Generator& generator, bool bias = true) {
  torch::nn::Linear layer(torch::nn::LinearOptions(1, 0).bias(bias));  // draws no numbers
  layer->options.in_features(in).out_features(out);
  layer->weight.set_data(torch::empty({out, in}));
  if (bias) layer->bias.set_data(torch::empty({out}));
  if (init == Init::none) return layer;
  const torch::NoGradGuard no_grad;
  // Both bounds are 1/sqrt(in), but LibTorch computes the weight's in steps that round differently.
  const double gain = std::sqrt(2.0 / (1 + std::pow(std::sqrt(5.0), 2)));
  const double root = std::sqrt(static_cast<double>(in));
  const double bound = std::sqrt(3.0) * (gain / root);
  layer->weight.uniform_(-bound, bound, optional(generator));
  if (bias) layer->bias.uniform_(-1 / root, 1 / root, optional(generator));
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
