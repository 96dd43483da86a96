#include "translution/models/gpt.h"

#include "translution/nn/dropout.h"
#include "translution/nn/linear.h"
#include "translution/nn/norm.h"
#include "translution/ops/compat.h"
#include "translution/ops/fixed_sum.h"

namespace translution {
namespace {

// On the CPU only: on other devices, reading the extremes would synchronise.
void check_vocabulary(const torch::Tensor& tokens, int64_t vocabulary) {
  if (!tokens.device().is_cpu() || tokens.numel() == 0) return;
  const auto [low, high] = tokens.aminmax();
  TORCH_CHECK(low.item<int64_t>() >= 0 && high.item<int64_t>() < vocabulary,
              "GPT: expected tokens from 0 to ", vocabulary - 1, ", got ", low.item<int64_t>(),
              " to ", high.item<int64_t>());
}

// Initialised as LibTorch's: N(0, 1).
torch::nn::Embedding make_embedding(int64_t vocabulary, int64_t dim, Init init,
                                    const at::Generator& generator) {
  auto weight = torch::empty({vocabulary, dim});
  if (init != Init::none) weight.normal_(0, 1, optional(generator));
  torch::nn::Embedding layer(torch::nn::EmbeddingOptions(vocabulary, dim)._weight(weight));
  layer->options._weight({});  // so that a clone draws its own weights
  return layer;
}

}  // namespace

GPTImpl::GPTImpl(const ModelOptions& o, const at::Generator& generator, const BlockBuilt& built)
    : options(o) {
  o.check();
  TORCH_CHECK(o.family == Family::gpt, "GPT: expected the options of a gpt, got those of a ",
              name_of(kFamilies, o.family), "; build ", o.family == Family::vit ? "ViT" : "Cloud",
              " or name a gpt model");
  const int64_t dim = o.architecture.dim;
  token_embedding =
      register_module("token_embedding", make_embedding(o.vocabulary, dim, o.init, generator));
  if (o.embeds_input())
    position_embedding = register_parameter(
        "position_embedding", start_vectors({o.length, dim}, o.init, torch::kFloat, generator));
  dropout = register_module("dropout", torch::nn::Dropout(o.dropout));
  backbone = register_module("backbone", Backbone(o, generator, built));
  if (o.extra_norms) head_norm = register_module("head_norm", make_norm(dim, o.norm_eps));
  head = register_module("head", make_linear(dim, o.vocabulary, o.init, generator, /*bias=*/false));
}

torch::Tensor GPTImpl::embed(const torch::Tensor& tokens, const at::Generator& generator) {
  TORCH_CHECK(tokens.defined(), "GPT: the tokens are missing");
  TORCH_CHECK(tokens.dim() == 2 && tokens.scalar_type() == torch::kLong,
              "GPT: expected int64 tokens [B, n], got ", tokens.scalar_type(), " ", tokens.sizes());
  TORCH_CHECK(tokens.size(1) > 0 && tokens.size(1) <= options.length, "GPT: expected 1 to ",
              options.length, " tokens, got ", tokens.size(1));
  TORCH_CHECK(tokens.device() == token_embedding->weight.device(), "GPT: the tokens are on ",
              tokens.device(), ", the model is on ", token_embedding->weight.device(),
              "; move one of them");
  check_vocabulary(tokens, options.vocabulary);
  auto x = token_embedding(tokens);  // [B,n,dim]
  if (position_embedding.defined())
    x = add_shared(x, position_embedding.narrow(0, 0, tokens.size(1)));
  return drop(dropout, x, generator);
}

torch::Tensor GPTImpl::logits(const torch::Tensor& features) {
  return multiply(head, head_norm ? normalise(head_norm, features) : features, options.precision);
}

torch::Tensor GPTImpl::forward(const torch::Tensor& tokens, const AttendOptions& call) {
  return logits(backbone(embed(tokens, call.generator), call));
}

std::vector<torch::Tensor> GPTImpl::attention_maps(const torch::Tensor& tokens) {
  return backbone->attention_maps(embed(tokens));
}

}  // namespace translution
