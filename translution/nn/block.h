#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <vector>

#include "translution/core/export.h"
#include "translution/nn/attention.h"
#include "translution/nn/points.h"

namespace translution {

/// Linear, GELU, Linear, with dropout after each.
class TRANSLUTION_API FeedForwardImpl : public torch::nn::Module {
 public:
  FeedForwardImpl(int64_t dim, int64_t hidden, const BlockStyle& style,
                  const at::Generator& generator = {});
  torch::Tensor forward(const torch::Tensor& x, const at::Generator& generator = {});

  torch::nn::Linear up{nullptr}, down{nullptr};
  torch::nn::Dropout dropout{nullptr};

 private:
  Gelu gelu_;
  Precision precision_;
};
TORCH_MODULE(FeedForward);

TRANSLUTION_API torch::nn::LayerNorm make_norm(int64_t dim, double eps);

/// x += attention(norm1(x)); x += mlp(norm2(x)). With PointOptions, a block between points: x are
/// the packed rows [R,dim] of all clouds, and the call has their pairs.
class TRANSLUTION_API BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(const AttentionOptions& attention, int64_t mlp_dim, const BlockStyle& style,
            const at::Generator& generator = {}, const std::optional<PointOptions>& points = {});
  /// If rows are given, only these query rows are computed and returned.
  torch::Tensor forward(const torch::Tensor& x, const AttendOptions& call = {});
  std::pair<torch::Tensor, torch::Tensor> forward_with_map(const torch::Tensor& x,
                                                           const AttendOptions& call = {});
  /// Only the last row, for a sequence that grows token by token.
  torch::Tensor forward_last(const torch::Tensor& x, Lookahead& lookahead);

  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  Attention attention{nullptr};
  PointAttention point_attention{nullptr};  ///< registered as "attention", which it replaces
  FeedForward mlp{nullptr};
  torch::nn::Dropout dropout{nullptr};

 private:
  torch::Tensor attend(const torch::Tensor& x, const AttendOptions& call);
  torch::Tensor add_residuals(const torch::Tensor& x, const torch::Tensor& attended,
                              const AttendOptions& call);
};
TORCH_MODULE(Block);

}  // namespace translution
