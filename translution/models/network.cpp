#include "translution/models/network.h"

namespace translution {

Network::Network(const ModelOptions& options, const at::Generator& generator) : options_(options) {
  if (options.family == Family::vit)
    vit_ = ViT(options, generator);
  else
    gpt_ = GPT(options, generator);
}

torch::Tensor Network::forward(const torch::Tensor& input, const at::Generator& generator) {
  return vit_ ? vit_->forward(input, generator) : gpt_->forward(input, {}, generator);
}

torch::nn::Module& Network::module() {
  if (vit_) return *vit_;
  return *gpt_;
}

Backbone& Network::backbone() { return vit_ ? vit_->backbone : gpt_->backbone; }

}  // namespace translution
