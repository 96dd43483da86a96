#include "translution/models/network.h"

namespace translution {

Network::Network(const ModelOptions& options, const at::Generator& generator,
                 const BlockBuilt& built)
    : options_(options) {
  if (options.family == Family::vit) vit_ = ViT(options, generator, built);
  if (options.family == Family::gpt) gpt_ = GPT(options, generator, built);
  if (options.family == Family::cloud) cloud_ = Cloud(options, generator, built);
}

torch::Tensor Network::forward(const torch::Tensor& input, const at::Generator& generator,
                               const Points& points) {
  const auto moved = input.to(device());
  if (vit_) return vit_->forward(moved, generator);
  if (cloud_) {
    const auto move = [&](const torch::Tensor& x) { return x.defined() ? x.to(device()) : x; };
    return cloud_->forward(moved, {move(points.positions), move(points.mask)}, generator);
  }
  AttendOptions call;
  call.generator = generator;
  return gpt_->forward(moved, call);
}

torch::Tensor Network::embed(const torch::Tensor& input, const at::Generator& generator) {
  const auto moved = input.to(device());
  return vit_ ? vit_->embed(moved, generator) : gpt_->embed(moved, generator);
}

torch::Tensor Network::last_rows() { return vit_ ? vit_->last_rows() : torch::Tensor(); }

torch::Tensor Network::logits(const torch::Tensor& features) {
  return vit_ ? vit_->logits(features) : gpt_->logits(features);
}

void Network::to(torch::Device device) { module().to(device); }

torch::Device Network::device() { return backbone()->norm->weight.device(); }

std::map<std::string, TableRows> Network::table_rows() {
  std::map<std::string, TableRows> rows;
  for (const auto& item : module().named_modules())
    if (const auto* layer = item.value()->as<AttentionImpl>())
      for (auto& [name, of_table] : layer->table_rows())
        rows.emplace(item.key() + "." + name, std::move(of_table));
  return rows;
}

torch::nn::Module& Network::module() {
  if (vit_) return *vit_;
  if (cloud_) return *cloud_;
  return *gpt_;
}

Backbone& Network::backbone() {
  if (vit_) return vit_->backbone;
  return cloud_ ? cloud_->backbone : gpt_->backbone;
}

}  // namespace translution
