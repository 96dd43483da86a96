#include "translution/train/adamw.h"

#include <torch/utils.h>

#include <cmath>

#include "translution/ops/large.h"

namespace translution {

AdamW::AdamW(std::vector<torch::Tensor> parameters, AdamWOptions o)
    : options(o), parameters_(std::move(parameters)) {
  for (const auto& parameter : parameters_) {
    TORCH_CHECK(parameter.is_contiguous(), "AdamW: wanted contiguous parameters, got one of shape ",
                parameter.sizes(), " and strides ", parameter.strides());
    const auto plain = parameter.options().requires_grad(false);
    state.first.push_back(large_zeros(parameter.sizes(), plain));
    state.second.push_back(large_zeros(parameter.sizes(), plain));
  }
}

double AdamW::step(double clip) {
  std::vector<torch::Tensor> parameters, gradients, first, second;
  for (size_t p = 0; p < parameters_.size(); ++p) {
    if (!parameters_[p].grad().defined()) continue;
    parameters.push_back(parameters_[p]);
    gradients.push_back(parameters_[p].grad());
    first.push_back(state.first[p]);
    second.push_back(state.second[p]);
  }
  const double norm = gradient_norm(gradients);
  if (!std::isfinite(norm)) return norm;
  const double scale = clip > 0 && norm > clip ? clip / norm : 1.0;
  adamw_step(options, ++state.steps, scale, parameters, gradients, first, second);
  return norm;
}

void AdamW::zero_grad() {
  for (auto& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
}

}  // namespace translution
