#pragma once

#include <torch/nn/modules/dropout.h>

namespace translution {

/// The layer's forward. Random numbers come from `generator`, or from LibTorch's default generator
/// if it is undefined.
inline torch::Tensor drop(torch::nn::Dropout& layer, const torch::Tensor& x,
                          const at::Generator& generator) {
  const double p = layer->options.p();
  if (!generator.defined() || !layer->is_training() || p == 0) return layer(x);
  return x * torch::empty_like(x).bernoulli_(1 - p, generator).div_(1 - p);
}

}  // namespace translution
