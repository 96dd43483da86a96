#pragma once

#include "tests/nn/positions.h"
#include "translution/models/cloud.h"
#include "translution/models/gpt.h"
#include "translution/models/options.h"
#include "translution/models/vit.h"

namespace translution {

/// Two layers of dim 12 with 2 heads of 8.
inline Architecture tiny_architecture() { return {"tiny", 2, 12, 2, 20, 8}; }

/// Images 2x12x8 in patches of 4: a grid of 3x2.
inline ModelOptions tiny_vit(const Position& position = {}, Pooling pooling = Pooling::cls) {
  ModelOptions options;
  options.architecture = tiny_architecture();
  options.image_size = {12, 8};
  options.patch_size = 4;
  options.channels = 2;
  options.classes = 5;
  options.pooling = pooling;
  options.position = position;
  return options;
}

/// Up to 7 tokens, vocabulary of 11.
inline ModelOptions tiny_gpt(const Position& position = {}) {
  ModelOptions options;
  options.family = Family::gpt;
  options.architecture = tiny_architecture();
  options.length = 7;
  options.vocabulary = 11;
  options.position = position;
  return options;
}

/// Points with 2 axes and 2 features, on a lattice with 2 points to each side, 0.5 apart.
inline ModelOptions tiny_cloud(const Position& position = {}, Pooling pooling = Pooling::cls) {
  auto options = ModelOptions::of_family(Family::cloud);
  options.architecture = tiny_architecture();
  options.axes = options.channels = 2;
  options.classes = 5;
  options.spacing = 0.5;
  options.pooling = pooling;
  options.position = position;
  options.position.sharing = Sharing::direction;
  options.position.radius = 2;
  return options;
}

/// Whether the method works between points.
inline bool works_on_points(const Position& position) {
  return position.method != Method::gated_position && !position.rotates() &&
         position.encoding == Encoding::relative;
}

/// ViT, GPT or Cloud with weights from the fixed seed.
template <typename Model>
Model build(const ModelOptions& options, torch::Dtype dtype = torch::kDouble) {
  torch::manual_seed(kSeed);
  Model model(options);
  model->to(dtype);
  return model;
}

inline at::Tensor random_images(int64_t batch, torch::Dtype dtype = torch::kDouble) {
  torch::manual_seed(kSeed + 1);
  return torch::randn({batch, 2, 12, 8}).to(dtype);
}

inline at::Tensor random_tokens(int64_t batch, int64_t count) {
  torch::manual_seed(kSeed + 1);
  return torch::randint(11, {batch, count}, torch::kLong);
}

/// Ten steps of plain gradient descent on one batch: the loss before and after.
template <typename Model>
std::pair<double, double> descend(Model& model, const at::Tensor& input, const at::Tensor& target) {
  const auto loss = [&] {
    const auto logits = model->forward(input);
    return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), target.reshape({-1}));
  };
  double first = 0;
  for (int step = 0; step < 10; ++step) {
    model->zero_grad();
    const auto value = loss();
    if (step == 0) first = value.template item<double>();
    value.backward();
    torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.sub_(parameter.grad(), 0.1);
  }
  return {first, loss().template item<double>()};
}

/// A map's rows sum to one, or for a convolution hold ones and zeros.
inline bool is_attention(const at::Tensor& map, bool convolution) {
  if (convolution) return map.eq(0).logical_or(map.eq(1)).all().item<bool>();
  return map.ge(0).all().item<bool>() && at::allclose(map.sum(-1), at::ones_like(map.sum(-1)));
}

}  // namespace translution
