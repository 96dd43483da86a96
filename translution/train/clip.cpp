#include "translution/train/clip.h"

#include <cmath>

#include "translution/ops/adamw_step.h"

namespace translution {

size_t layer_of_parameter(const std::string& name, int64_t depth) {
  const auto begins_with = [&](const std::string& start) { return name.rfind(start, 0) == 0; };
  const std::string blocks = "backbone.blocks.";
  if (begins_with(blocks)) return static_cast<size_t>(std::stoll(name.substr(blocks.size()))) + 1;
  return begins_with("backbone.norm") || begins_with("head") ? static_cast<size_t>(depth) + 1 : 0;
}

std::vector<std::vector<size_t>> parameter_layers(Network& network) {
  const int64_t depth = network.options().architecture.depth;
  std::vector<std::vector<size_t>> layers(static_cast<size_t>(depth) + 2);
  const auto names = network.module().named_parameters().keys();
  for (size_t p = 0; p < names.size(); ++p)
    layers[layer_of_parameter(names[p], depth)].push_back(p);
  return layers;
}

std::vector<torch::Tensor> gradients_of(const std::vector<torch::Tensor>& parameters,
                                        const std::vector<size_t>& indices) {
  std::vector<torch::Tensor> gradients;
  for (const size_t p : indices)
    if (parameters[p].grad().defined()) gradients.push_back(parameters[p].grad());
  return gradients;
}

std::vector<double> gradient_norms(const std::vector<torch::Tensor>& parameters,
                                   const std::vector<std::vector<size_t>>& groups,
                                   const SplitGradients& split) {
  std::vector<double> whole, parts;  // norms of a group's parameters; squares of those split
  for (const auto& group : groups) {
    std::vector<size_t> of_all, of_rank;
    for (const size_t p : group) (split.sum && split.is_split[p] ? of_rank : of_all).push_back(p);
    whole.push_back(gradient_norm(gradients_of(parameters, of_all)));
    parts.push_back(std::pow(gradient_norm(gradients_of(parameters, of_rank)), 2));
  }
  if (!split.sum) return whole;
  split.sum(parts);
  for (size_t g = 0; g < groups.size(); ++g) whole[g] = std::sqrt(whole[g] * whole[g] + parts[g]);
  return whole;
}

double layer_scale(const StepOptions& options, double norm) {
  const double limited = options.clip_by == ClipBy::last ? options.last_norm : norm;
  return options.clip > 0 && limited > options.clip ? options.clip / limited : 1.0;
}

double combined_norm(const std::vector<double>& norms) {
  double sum = 0;
  for (const double norm : norms) sum += norm * norm;
  return std::sqrt(sum);
}

}  // namespace translution
