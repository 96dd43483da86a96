#pragma once

#include <torch/nn/modules/dropout.h>

namespace translution {

/// Dropout with probability p. Random numbers come from `generator`, or from LibTorch's default
/// generator if it is undefined.
inline torch::Tensor drop(double p, const torch::Tensor& x, const at::Generator& generator) {
  if (!generator.defined()) return at::dropout(x, p, /*train=*/true);
  return x * torch::empty_like(x).bernoulli_(1 - p, generator).div_(1 - p);
}

/// The same by a layer, which drops in training only.
inline torch::Tensor drop(torch::nn::Dropout& layer, const torch::Tensor& x,
                          const at::Generator& generator) {
  const double p = layer->options.p();
  if (!generator.defined() || !layer->is_training() || p == 0) return layer(x);
  return drop(p, x, generator);
}

}  // namespace translution
