#include "translution/train/adamw.h"

#include <torch/utils.h>

#include <cmath>

#include "translution/ops/large.h"

namespace translution {
namespace {

double norm_of_gradients(const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::Tensor> gradients;
  for (const auto& parameter : parameters)
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  return gradient_norm(gradients);
}

}  // namespace

AdamW::AdamW(std::vector<torch::Tensor> parameters, AdamWOptions o, Memory memory)
    : options(o), parameters_(std::move(parameters)), memory_(memory) {
  state.first.resize(parameters_.size());
  state.second.resize(parameters_.size());
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const auto& parameter = parameters_[p];
    TORCH_CHECK(parameter.is_contiguous(), "AdamW: wanted contiguous parameters, got one of shape ",
                parameter.sizes(), " and strides ", parameter.strides());
    if (memory == Memory::ready) make_moments(p);
  }
}

void AdamW::make_moments(size_t p) {
  const auto plain = parameters_[p].options().requires_grad(false);
  state.first[p] = large_zeros(parameters_[p].sizes(), plain);
  state.second[p] = large_zeros(parameters_[p].sizes(), plain);
}

double AdamW::step(double clip) {
  const double norm = norm_of_gradients(parameters_);
  if (!std::isfinite(norm)) return norm;
  const double scale = clip > 0 && norm > clip ? clip / norm : 1.0;
  ++state.steps;
  for (size_t p = 0; p < parameters_.size(); ++p) {
    auto& gradient = parameters_[p].mutable_grad();
    if (!gradient.defined()) continue;
    if (!state.first[p].defined()) {
      release_kept_memory();  // of the gradients freed before
      make_moments(p);
    }
    adamw_step(options, state.steps, scale, {parameters_[p]}, {gradient}, {state.first[p]},
               {state.second[p]});
    if (memory_ == Memory::lean) gradient.reset();
  }
  return norm;
}

void AdamW::zero_grad() {
  for (auto& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
}

}  // namespace translution
