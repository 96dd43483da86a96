#pragma once

#include <vector>

#include "translution/core/export.h"
#include "translution/models/backbone.h"
#include "translution/nn/points.h"

namespace translution {

/// The attention of every block between the tokens of clouds, which are packed one after another:
/// the class token of a cloud, then its points.
struct CloudAttention {
  torch::Tensor query, key;  ///< int64 [E]: row numbers of tokens
  torch::Tensor first;       ///< int64 [B+1]: cloud c has rows first[c] … first[c+1] - 1
  std::vector<torch::Tensor> weights;  ///< [E,heads] of each block
};

/// Clouds of points to classes or a number, with blocks of any method that works on points. All
/// blocks share one list of pairs and where they lie on the lattice.
class TRANSLUTION_API CloudImpl : public torch::nn::Module {
 public:
  /// Random numbers for weights, and below for dropout, come from `generator`, or from LibTorch's
  /// default generator if it is undefined.
  explicit CloudImpl(const ModelOptions& options, const at::Generator& generator = {},
                     const BlockBuilt& built = {});

  /// Features x [B,N,channels] with positions [B,N,axes] and a mask [B,N], true for a point, or
  /// none, to logits [B,classes], or to outputs [B] of a model that predicts a number.
  torch::Tensor forward(const torch::Tensor& x, const Points& points,
                        const at::Generator& generator = {});
  CloudAttention attention_maps(const torch::Tensor& x, const Points& points);
  /// Of the lattice, [1].
  torch::Tensor spacing() const;

  ModelOptions options;
  torch::Tensor cls_token, log_spacing;  // [dim], [1]; undefined where not used
  torch::nn::Linear point_embed{nullptr}, head{nullptr};
  torch::nn::Linear position_up{nullptr}, position_down{nullptr};  // empty where not used
  torch::nn::Dropout dropout{nullptr};
  Backbone backbone{nullptr};

 private:
  struct Tokens;
  Tokens embed(const torch::Tensor& x, const Points& points, const at::Generator& generator);
  torch::Tensor embed_positions(const Points& points, const PackedPoints& rows);
};
TORCH_MODULE(Cloud);

}  // namespace translution
