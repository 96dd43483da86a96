#pragma once

#include <torch/nn/modules/embedding.h>

#include "translution/models/backbone.h"

namespace translution {

/// Generative language model: causal blocks of any method, next-token logits.
class GPTImpl : public torch::nn::Module {
 public:
  explicit GPTImpl(const ModelOptions& options);

  /// [B,n] int64 -> [B,n,vocabulary]; with `rows` only the logits at those places.
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& rows = {});
  /// One map per block, [B,heads,n,n].
  std::vector<torch::Tensor> attention_maps(const torch::Tensor& tokens);
  /// What the first block sees, [B,n,dim].
  torch::Tensor embed(const torch::Tensor& tokens);
  /// From what the backbone gives, [B,n,dim], to [B,n,vocabulary].
  torch::Tensor logits(const torch::Tensor& features);

  ModelOptions options;
  torch::nn::Embedding token_embedding{nullptr};
  torch::Tensor position_embedding;  // [length,dim]; undefined where not used
  torch::nn::Dropout dropout{nullptr};
  Backbone backbone{nullptr};
  torch::nn::LayerNorm head_norm{nullptr};  // empty without extra_norms
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(GPT);

}  // namespace translution
