#pragma once

#include <torch/nn/modules/embedding.h>

#include "translution/core/export.h"
#include "translution/models/backbone.h"

namespace translution {

/// Generative language model: causal blocks of any method, next-token logits.
class TRANSLUTION_API GPTImpl : public torch::nn::Module {
 public:
  /// Weights come from `generator`, or from the process's where it is undefined; so does dropout
  /// below.
  explicit GPTImpl(const ModelOptions& options, const at::Generator& generator = {});

  /// [B,n] int64 -> [B,n,vocabulary]; with `rows` only the logits at those places.
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& rows = {},
                        const at::Generator& generator = {});
  /// One map per block, [B,heads,n,n].
  std::vector<torch::Tensor> attention_maps(const torch::Tensor& tokens);
  /// What the first block sees, [B,n,dim].
  torch::Tensor embed(const torch::Tensor& tokens, const at::Generator& generator = {});
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
