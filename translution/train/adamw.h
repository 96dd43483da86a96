#pragma once

#include <torch/types.h>

#include <vector>

namespace translution {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay =
      0.0;  ///< on tensors of two or more dimensions; norms and biases keep theirs
};

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

/// One parameter's part of a step, the `steps`-th from 1 on, with its gradient times `scale`.
void adamw_update(const AdamWOptions& options, int64_t steps, double scale,
                  const torch::Tensor& gradient, torch::Tensor& parameter, torch::Tensor& first,
                  torch::Tensor& second);

/// Square root of the sum of squares of all gradients; always the same bits.
double gradient_norm(const std::vector<torch::Tensor>& parameters);

}  // namespace translution
