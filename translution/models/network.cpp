#include "translution/models/network.h"

namespace translution {

Network::Network(const ModelOptions& options) : options_(options) {
  if (options.family == Family::vit)
    vit_ = ViT(options);
  else
    gpt_ = GPT(options);
}

torch::Tensor Network::forward(const torch::Tensor& input) {
  return vit_ ? vit_->forward(input) : gpt_->forward(input);
}

torch::nn::Module& Network::module() {
  if (vit_) return *vit_;
  return *gpt_;
}

Backbone& Network::backbone() { return vit_ ? vit_->backbone : gpt_->backbone; }

}  // namespace translution
