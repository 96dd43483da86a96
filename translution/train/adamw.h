#pragma once

#include <torch/types.h>

#include <vector>

#include "translution/ops/adamw_step.h"

namespace translution {

/// AdamW with decoupled weight decay: one pass over weights, gradients and moments, spread over all
/// threads, the same bits for any number of them. A parameter without a gradient is left alone.
class AdamW {
 public:
  /// One moment of each kind per parameter, in the order given.
  struct State {
    int64_t steps = 0;
    std::vector<torch::Tensor> first, second;
  };

  AdamW(std::vector<torch::Tensor> parameters, AdamWOptions options);

  /// Clips the gradients to the global norm `clip` (0: not at all) on the way, updates, and returns
  /// the norm before clipping. With a norm that is not finite nothing is changed.
  double step(double clip = 0.0);
  void zero_grad();

  AdamWOptions options;
  State state;

 private:
  std::vector<torch::Tensor> parameters_;
};

}  // namespace translution
