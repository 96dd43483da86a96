#include "translution/train/adamw.h"

#include <torch/utils.h>

#include <cmath>

#include "translution/ops/large.h"
#include "translution/ops/runtime.h"

namespace translution {

AdamW::AdamW(std::vector<torch::Tensor> parameters, AdamWOptions o, Memory memory)
    : options(o), parameters_(std::move(parameters)), memory_(memory) {
  state.first.resize(parameters_.size());
  state.second.resize(parameters_.size());
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const auto& parameter = parameters_[p];
    TORCH_CHECK(parameter.is_contiguous(),
                "AdamW: expected contiguous parameters, got one of shape ", parameter.sizes(),
                " and strides ", parameter.strides());
    if (memory == Memory::ready) allocate_moments(p);
  }
}

void AdamW::allocate_moments(size_t p) {
  const auto moment_options = parameters_[p].options().requires_grad(false);
  state.first[p] = large_zeros(parameters_[p].sizes(), moment_options);
  state.second[p] = large_zeros(parameters_[p].sizes(), moment_options);
}

double AdamW::step(double clip) {
  std::vector<torch::Tensor> gradients;
  for (const auto& parameter : parameters_)
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  const double norm = gradient_norm(gradients);
  gradients.clear();  // so that update can free each one
  if (!std::isfinite(norm)) return norm;
  const double scale = clip > 0 && norm > clip ? clip / norm : 1.0;
  update(std::vector<double>(parameters_.size(), scale));
  return norm;
}

void AdamW::update(const std::vector<double>& scales) {
  ++state.steps;
  for (size_t p = 0; p < parameters_.size(); ++p) {
    if (!parameters_[p].grad().defined()) continue;
    if (memory_ == Memory::lean)
      update_lean(p, scales[p]);
    else
      adamw_step(options, state.steps, scales[p], {parameters_[p]}, {parameters_[p].grad()},
                 {state.first[p]}, {state.second[p]});
  }
}

void AdamW::update_lean(size_t p, double scale) {
  if (!state.first[p].defined()) {
    runtime().release_pool();  // returns the memory of gradients freed so far to the system
    allocate_moments(p);
  }
  auto& gradient = parameters_[p].mutable_grad();
  adamw_step(options, state.steps, scale, {parameters_[p]}, {gradient}, {state.first[p]},
             {state.second[p]});
  gradient.reset();
}

void AdamW::zero_grad() {
  for (auto& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
}

}  // namespace translution
