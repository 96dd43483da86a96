#pragma once

#include <functional>

#include "translution/core/export.h"
#include "translution/models/options.h"
#include "translution/nn/block.h"

namespace translution {

/// Called with each block as soon as its weights are initialised, before the next block is built.
using BlockBuilt = std::function<void(int64_t layer, torch::nn::Module& block)>;

/// The blocks of a model, followed by a norm.
class TRANSLUTION_API BackboneImpl : public torch::nn::Module {
 public:
  explicit BackboneImpl(const ModelOptions& options, const at::Generator& generator = {},
                        const BlockBuilt& built = {});
  /// x [B,N,dim] -> [B,N,dim]. With rows, the last block computes only these tokens: [B,Nq,dim].
  /// Of points: packed rows [R,dim] -> [R,dim], with the pairs of the call.
  torch::Tensor forward(torch::Tensor x, const AttendOptions& call = {});
  /// The attention maps of all blocks, [B,heads,N,N] each; of points [E,heads].
  std::vector<torch::Tensor> attention_maps(torch::Tensor x, const AttendOptions& call = {});

  /// Called before and after every block, in forward and in backward; may be empty. It may throw a
  /// std::exception to stop the pass.
  std::function<void()> between_blocks;

  torch::nn::ModuleList blocks;
  torch::nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(Backbone);

}  // namespace translution
