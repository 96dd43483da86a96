#pragma once

#include <torch/types.h>

#include <vector>

namespace translution {

/// Adds the gradients of consecutive shards of a batch as a binary tree: (0 + 1) + (2 + 3), … Holds
/// one set of gradients for each level of the tree.
class GradientTree {
 public:
  /// The shards are a power of two.
  explicit GradientTree(std::vector<torch::Tensor> parameters);

  /// Takes the gradients of the parameters as those of the next shard; leaves them undefined.
  void add_shard();
  /// Gives the parameters the sum over all shards as their gradients, and returns these.
  std::vector<torch::Tensor> finish();

 private:
  std::vector<torch::Tensor> parameters_;
  std::vector<std::vector<torch::Tensor>> sums_;  // of finished subtrees, largest first
  int64_t shards_ = 0;
};

}  // namespace translution
