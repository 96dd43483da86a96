#pragma once

#include "translution/core/export.h"
#include "translution/models/backbone.h"

namespace translution {

/// Vision Transformer with blocks of any method.
class TRANSLUTION_API ViTImpl : public torch::nn::Module {
 public:
  /// Random numbers for weights, and below for dropout, come from `generator`, or from LibTorch's
  /// default generator if it is undefined.
  explicit ViTImpl(const ModelOptions& options, const at::Generator& generator = {},
                   const BlockBuilt& built = {});

  /// Images [B,channels,rows,cols] to logits [B,classes].
  torch::Tensor forward(const torch::Tensor& image, const at::Generator& generator = {});
  /// One map per block, [B,heads,N,N]; token 0 is the class token if the model has one.
  std::vector<torch::Tensor> attention_maps(const torch::Tensor& image);
  /// Input of the first block [B,N,dim]: patch features with class token and position embedding.
  torch::Tensor embed(const torch::Tensor& image, const at::Generator& generator = {});
  /// Query rows of the last block that the logits read: the class token. Undefined: all.
  torch::Tensor last_rows() const;
  /// Output of the backbone, [B,N,dim] or of these rows only, to logits [B,classes].
  torch::Tensor logits(const torch::Tensor& features);

  ModelOptions options;
  torch::nn::LayerNorm patch_norm{nullptr}, embed_norm{nullptr};  // empty without extra_norms
  torch::nn::Linear patch_embed{nullptr}, head{nullptr};
  torch::Tensor cls_token, position_embedding;  // [dim], [N,dim]; undefined where not used
  torch::nn::Dropout dropout{nullptr};
  Backbone backbone{nullptr};
};
TORCH_MODULE(ViT);

}  // namespace translution
