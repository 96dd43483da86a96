#pragma once

#include <torch/types.h>

#include <vector>

#include "translution/core/export.h"
#include "translution/ops/adamw_step.h"

namespace translution {

/// AdamW with decoupled weight decay: one pass over weights, gradients and moments, spread over all
/// threads, the same bits for any number of them. A parameter without a gradient is left alone.
class TRANSLUTION_API AdamW {
 public:
  /// When moments are allocated, and gradients freed.
  enum class Memory {
    ready,  ///< all moments at once; gradients stay until zero_grad
    /// The moments of a parameter in its first update, and each gradient is freed after its use: a
    /// first step never holds all gradients beside all moments.
    lean,
  };
  /// One moment of each kind per parameter, in the order given; undefined until allocated.
  struct State {
    int64_t steps = 0;
    std::vector<torch::Tensor> first, second;
  };

  AdamW(std::vector<torch::Tensor> parameters, AdamWOptions options, Memory memory = Memory::ready);

  /// Clips the gradients to the global norm `clip` (0: not at all) on the way, updates, and returns
  /// the norm before clipping. With a norm that is not finite nothing is changed.
  double step(double clip = 0.0);
  void zero_grad();

  AdamWOptions options;
  State state;

 private:
  void make_moments(size_t parameter);
  void update_lean(size_t parameter, double scale);

  std::vector<torch::Tensor> parameters_;
  const Memory memory_;
};

}  // namespace translution
