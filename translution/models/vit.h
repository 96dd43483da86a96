#pragma once

#include "translution/core/export.h"
#include "translution/models/backbone.h"

namespace translution {

/// Vision Transformer: patches, blocks of any method, classes.
class TRANSLUTION_API ViTImpl : public torch::nn::Module {
 public:
  /// Weights come from `generator`, or from the process's where it is undefined; so does dropout
  /// below.
  explicit ViTImpl(const ModelOptions& options, const at::Generator& generator = {});

  /// [B,channels,H,W] -> [B,classes]
  torch::Tensor forward(const torch::Tensor& image, const at::Generator& generator = {});
  /// One map per block, [B,heads,N,N]; token 0 is the class token where there is one.
  std::vector<torch::Tensor> attention_maps(const torch::Tensor& image);
  /// Patch features with class token and position embedding: what the first block sees, [B,N,dim].
  torch::Tensor embed(const torch::Tensor& image, const at::Generator& generator = {});

  ModelOptions options;
  torch::nn::LayerNorm patch_norm{nullptr}, embed_norm{nullptr};  // empty without extra_norms
  torch::nn::Linear patch_embed{nullptr}, head{nullptr};
  torch::Tensor cls_token, position_embedding;  // [dim], [N,dim]; undefined where not used
  torch::nn::Dropout dropout{nullptr};
  Backbone backbone{nullptr};
};
TORCH_MODULE(ViT);

}  // namespace translution
