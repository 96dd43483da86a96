#include "translution/train/gradient_tree.h"

#include <torch/utils.h>

namespace translution {

GradientTree::GradientTree(std::vector<torch::Tensor> parameters)
    : parameters_(std::move(parameters)) {}

void GradientTree::add_shard() {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> gradients;
  for (auto& parameter : parameters_) {
    auto& gradient = parameter.mutable_grad();
    gradients.push_back(gradient.defined() ? gradient.contiguous() : gradient);
    gradient.reset();
  }
  for (int64_t n = shards_++; n & 1; n >>= 1) {
    auto left = std::move(sums_.back());
    sums_.pop_back();
    for (size_t p = 0; p < left.size(); ++p) {
      if (!left[p].defined())
        left[p] = gradients[p];  // a shard may not use every parameter
      else if (gradients[p].defined())
        left[p].add_(gradients[p]);
    }
    gradients = std::move(left);
  }
  sums_.push_back(std::move(gradients));
}

std::vector<torch::Tensor> GradientTree::finish() {
  TORCH_INTERNAL_ASSERT(sums_.size() == 1);
  std::vector<torch::Tensor> defined;
  for (size_t p = 0; p < parameters_.size(); ++p) {
    parameters_[p].mutable_grad() = sums_[0][p];
    if (sums_[0][p].defined()) defined.push_back(sums_[0][p]);
  }
  sums_.clear();
  return defined;
}

}  // namespace translution
