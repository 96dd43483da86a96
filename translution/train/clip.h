#pragma once

#include <functional>
#include <string>
#include <vector>

#include "translution/models/network.h"
#include "translution/train/step.h"

namespace translution {

/// The layer of a parameter: 0 before the blocks, 1 to `depth` in a block, depth + 1 behind them.
size_t layer_of_parameter(const std::string& name, int64_t depth);

/// The parameters of a network by layer, as indices of `parameters()`.
std::vector<std::vector<size_t>> parameter_layers(Network& network);

/// The gradients of some parameters; those without a gradient are left out.
std::vector<torch::Tensor> gradients_of(const std::vector<torch::Tensor>& parameters,
                                        const std::vector<size_t>& indices);

/// Gradients of which each rank of a group has a part.
struct SplitGradients {
  std::vector<bool> is_split;  ///< of each parameter; the others are the same on all ranks
  /// Replaces the numbers of this rank by their sums over the ranks of the group.
  std::function<void(std::vector<double>&)> sum;
};

/// The norms of the gradients of groups of parameters, such as parameter_layers.
std::vector<double> gradient_norms(const std::vector<torch::Tensor>& parameters,
                                   const std::vector<std::vector<size_t>>& groups,
                                   const SplitGradients& split);

/// The factor of the gradients of a layer, or of all for ClipBy::global; `norm` is theirs.
double layer_scale(const StepOptions& options, double norm);

/// The norm of all gradients from the norms of the layers.
double combined_norm(const std::vector<double>& norms);

}  // namespace translution
