#include "translution/models/vit.h"

#include "translution/nn/dropout.h"
#include "translution/nn/linear.h"
#include "translution/nn/norm.h"
#include "translution/ops/fixed_sum.h"

namespace translution {
ViTImpl::ViTImpl(const ModelOptions& o, const at::Generator& generator, const BlockBuilt& built)
    : options(o) {
  o.check();
  TORCH_CHECK(o.family == Family::vit, "ViT: expected the options of a vit, got those of a ",
              name_of(kFamilies, o.family), "; build ", o.family == Family::gpt ? "GPT" : "Cloud",
              " or name a vit model");
  const int64_t dim = o.architecture.dim;
  const int64_t patch_dim = o.channels * o.patch_size * o.patch_size;
  if (o.extra_norms) patch_norm = register_module("patch_norm", make_norm(patch_dim, o.norm_eps));
  patch_embed = register_module("patch_embed", make_linear(patch_dim, dim, o.init, generator));
  if (o.extra_norms) embed_norm = register_module("embed_norm", make_norm(dim, o.norm_eps));
  const auto initialised = [&](at::IntArrayRef shape) {
    return start_vectors(shape, o.init, torch::kFloat, generator);
  };
  if (o.has_cls()) cls_token = register_parameter("cls_token", initialised({dim}));
  if (o.embeds_input())
    position_embedding = register_parameter("position_embedding", initialised({o.tokens(), dim}));
  dropout = register_module("dropout", torch::nn::Dropout(o.dropout));
  backbone = register_module("backbone", Backbone(o, generator, built));
  head = register_module("head", make_linear(dim, o.classes, o.init, generator));
}

torch::Tensor ViTImpl::embed(const torch::Tensor& image, const at::Generator& generator) {
  TORCH_CHECK(image.defined(), "ViT: the images are missing");
  TORCH_CHECK(image.dim() == 4 && image.size(1) == options.channels &&
                  image.size(2) == options.image_size[0] && image.size(3) == options.image_size[1],
              "ViT: expected images [B, ", options.channels, ", ", options.image_size[0], ", ",
              options.image_size[1], "], got ", image.sizes());
  // Compare with the bias, which has the features' type; the weight may be bfloat16
  // (bf16_weights.h).
  const auto& like = patch_embed->bias;
  TORCH_CHECK(image.scalar_type() == like.scalar_type() && image.device() == like.device(),
              "ViT: the images are ", image.scalar_type(), " on ", image.device(),
              ", the model is ", like.scalar_type(), " on ", like.device(),
              "; convert or move one of them");
  const int64_t B = image.size(0), P = options.patch_size;
  const int64_t rows = options.grid()[0], cols = options.grid()[1];
  auto patches = image.reshape({B, options.channels, rows, P, cols, P})
                     .permute({0, 2, 4, 3, 5, 1})  // [B,rows,cols,P,P,channels]
                     .reshape({B, rows * cols, P * P * options.channels});
  if (patch_norm) patches = normalise(patch_norm, patches);
  auto tokens = multiply(patch_embed, patches, options.precision);  // [B,rows*cols,dim]
  if (embed_norm) tokens = normalise(embed_norm, tokens);
  if (cls_token.defined()) {
    const auto zeros = torch::zeros({B, 1, tokens.size(2)}, tokens.options());
    tokens = torch::cat({add_shared(zeros, cls_token.unsqueeze(0)), tokens}, 1);  // [B,N,dim]
  }
  if (position_embedding.defined()) tokens = add_shared(tokens, position_embedding);
  return drop(dropout, tokens, generator);
}

torch::Tensor ViTImpl::last_rows() const {
  return options.pooling == Pooling::cls ? torch::zeros({1}, torch::kLong) : torch::Tensor();
}

torch::Tensor ViTImpl::logits(const torch::Tensor& features) {
  const auto pooled = options.pooling == Pooling::mean
                          ? sum_first(features.transpose(0, 1)) / features.size(1)
                          : features.select(1, 0);  // [B,dim]
  return multiply(head, pooled, options.precision);
}

torch::Tensor ViTImpl::forward(const torch::Tensor& image, const at::Generator& generator) {
  const auto tokens = embed(image, generator);
  AttendOptions call(last_rows());
  call.generator = generator;
  return logits(backbone(tokens, call));
}

std::vector<torch::Tensor> ViTImpl::attention_maps(const torch::Tensor& image) {
  return backbone->attention_maps(embed(image));
}

}  // namespace translution
