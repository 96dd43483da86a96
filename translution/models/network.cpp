#include "translution/models/network.h"

namespace translution {

Network::Network(const ModelOptions& options, const at::Generator& generator) : options_(options) {
  if (options.family == Family::vit)
    vit_ = ViT(options, generator);
  else
    gpt_ = GPT(options, generator);
}

torch::Tensor Network::forward(const torch::Tensor& input, const at::Generator& generator) {
  const auto moved = input.to(device());
  if (vit_) return vit_->forward(moved, generator);
  AttendOptions call;
  call.generator = generator;
  return gpt_->forward(moved, call);
}

void Network::to(torch::Device device) { module().to(device); }

torch::Device Network::device() { return backbone()->norm->weight.device(); }

torch::nn::Module& Network::module() {
  if (vit_) return *vit_;
  return *gpt_;
}

Backbone& Network::backbone() { return vit_ ? vit_->backbone : gpt_->backbone; }

}  // namespace translution
