#pragma once

#include <torch/nn/modules/embedding.h>

#include "translution/core/export.h"
#include "translution/models/backbone.h"

namespace translution {

/// Generative language model with causal blocks of any method.
class TRANSLUTION_API GPTImpl : public torch::nn::Module {
 public:
  /// Random numbers for weights, and below for dropout, come from `generator`, or from LibTorch's
  /// default generator if it is undefined.
  explicit GPTImpl(const ModelOptions& options, const at::Generator& generator = {},
                   const BlockBuilt& built = {});

  /// Tokens [B,n] int64 to next-token logits [B,n,vocabulary]; with rows, logits of these tokens
  /// only.
  torch::Tensor forward(const torch::Tensor& tokens, const AttendOptions& call = {});
  /// One map per block, [B,heads,n,n].
  std::vector<torch::Tensor> attention_maps(const torch::Tensor& tokens);
  /// Input of the first block, [B,n,dim].
  torch::Tensor embed(const torch::Tensor& tokens, const at::Generator& generator = {});
  /// Output of the backbone [B,n,dim] to logits [B,n,vocabulary].
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
