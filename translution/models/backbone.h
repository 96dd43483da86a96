#pragma once

#include <functional>

#include "translution/core/export.h"
#include "translution/models/options.h"
#include "translution/nn/block.h"

namespace translution {

/// The blocks of a model and the norm behind them.
class TRANSLUTION_API BackboneImpl : public torch::nn::Module {
 public:
  explicit BackboneImpl(const ModelOptions& options, const at::Generator& generator = {});
  /// `rows`: the tokens that the caller reads; the last block computes only those.
  torch::Tensor forward(torch::Tensor x, const torch::Tensor& rows = {},
                        const at::Generator& generator = {});
  /// The attention maps of all blocks, [B,heads,N,N] each.
  std::vector<torch::Tensor> attention_maps(torch::Tensor x);

  /// Called before and after every block, in forward and in backward; may be missing. It ends the
  /// pass by throwing a std::exception.
  std::function<void()> between_blocks;

  torch::nn::ModuleList blocks;
  torch::nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(Backbone);

}  // namespace translution
