#pragma once

#include <torch/types.h>

#include <vector>

#include "translution/core/export.h"
#include "translution/ops/adamw_step.h"

namespace translution {

/// AdamW with decoupled weight decay. A step is one pass over weights, gradients and moments, split
/// over all threads; the result has the same bits for any number of threads. Skips parameters
/// without a gradient.
class TRANSLUTION_API AdamW {
 public:
  /// When moments are allocated and gradients are freed.
  enum class Memory {
    ready,  ///< allocates all moments in the constructor; frees gradients in zero_grad
    /// Allocates a parameter's moments in its first update and frees its gradient after each
    /// update: the first step never holds all gradients and all moments at the same time.
    lean,
  };
  /// First and second moment of each parameter, in the order given; undefined until allocated.
  struct State {
    int64_t steps = 0;
    std::vector<torch::Tensor> first, second;
  };

  AdamW(std::vector<torch::Tensor> parameters, AdamWOptions options, Memory memory = Memory::ready);

  /// Scales the gradients to a global norm of at most `clip` (0: no clipping), updates the
  /// parameters, and returns the norm before clipping. Changes nothing if that norm is not finite.
  double step(double clip = 0.0);
  /// The update of a step: multiplies the gradient of parameter p by scales[p].
  void update(const std::vector<double>& scales);
  void zero_grad();

  AdamWOptions options;
  State state;

 private:
  void allocate_moments(size_t parameter);
  void update_lean(size_t parameter, double scale);

  std::vector<torch::Tensor> parameters_;
  const Memory memory_;
};

}  // namespace translution
