#include "translution/nn/block.h"

#include "translution/core/error.h"
#include "translution/nn/dropout.h"
#include "translution/nn/linear.h"
#include "translution/nn/norm.h"
#include "translution/ops/gelu.h"

namespace translution {

using namespace detail;

namespace {

torch::nn::Dropout make_dropout(double p) {
  require(p >= 0 && p < 1, "block: expected a dropout probability in [0, 1), got ", p);
  return torch::nn::Dropout(p);
}

torch::nn::Linear checked_linear(int64_t in, int64_t out, Init init,
                                 const at::Generator& generator) {
  require(in > 0 && out > 0, "block: expected dim and mlp_dim of 1 or more, got ", in, " and ",
          out);
  return make_linear(in, out, init, generator);
}

}  // namespace

torch::nn::LayerNorm make_norm(int64_t dim, double eps) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({dim}).eps(eps));
}

FeedForwardImpl::FeedForwardImpl(int64_t dim, int64_t hidden, const BlockStyle& style,
                                 const at::Generator& generator)
    : up(register_module("up", checked_linear(dim, hidden, style.init, generator))),
      down(register_module("down", checked_linear(hidden, dim, style.init, generator))),
      dropout(register_module("dropout", make_dropout(style.dropout))),
      gelu_(style.gelu),
      precision_(style.precision) {}

torch::Tensor FeedForwardImpl::forward(const torch::Tensor& x, const at::Generator& generator) {
  const auto hidden =
      drop(dropout, gelu(multiply(up, x, precision_), gelu_ == Gelu::tanh), generator);
  return drop(dropout, multiply(down, hidden, precision_), generator);
}

BlockImpl::BlockImpl(const AttentionOptions& options, int64_t mlp_dim, const BlockStyle& style,
                     const at::Generator& generator, const std::optional<PointOptions>& points)
    : norm1(register_module("norm1", make_norm(options.dim(), style.norm_eps))),
      norm2(register_module("norm2", make_norm(options.dim(), style.norm_eps))),
      attention(points ? Attention(nullptr)
                       : register_module("attention", Attention(options, generator))),
      point_attention(
          points ? register_module("attention", PointAttention(options, *points, generator))
                 : PointAttention(nullptr)),
      mlp(register_module("mlp", FeedForward(options.dim(), mlp_dim, style, generator))),
      dropout(register_module("dropout", make_dropout(style.dropout))) {}

torch::Tensor BlockImpl::add_residuals(const torch::Tensor& x, const torch::Tensor& attended,
                                       const AttendOptions& call) {
  const auto queried = call.rows.defined() ? x.index_select(1, call.rows.to(x.device())) : x;
  const auto y = queried + drop(dropout, attended, call.generator);
  return y + mlp(normalise(norm2, y), call.generator);
}

torch::Tensor BlockImpl::attend(const torch::Tensor& x, const AttendOptions& call) {
  if (attention) return attention(x, call);
  TORCH_CHECK(call.points != nullptr, "block: the pairs of the points are missing");
  return point_attention->attend(x, *call.points, call.generator);
}

torch::Tensor BlockImpl::forward(const torch::Tensor& x, const AttendOptions& call) {
  return add_residuals(x, attend(normalise(norm1, x), call), call);
}

torch::Tensor BlockImpl::forward_last(const torch::Tensor& x, Lookahead& lookahead) {
  const auto gathered = lookahead.gather(normalise(norm1, x)[0]).view({1, 1, -1});
  const auto last = torch::tensor({x.size(1) - 1}, torch::kLong);
  return add_residuals(x, multiply(attention->out, gathered, attention->options.precision()), last);
}

std::pair<torch::Tensor, torch::Tensor> BlockImpl::forward_with_map(const torch::Tensor& x,
                                                                    const AttendOptions& call) {
  if (point_attention) {
    TORCH_CHECK(call.points != nullptr, "block: the pairs of the points are missing");
    const auto map = point_attention->attention_map(normalise(norm1, x), *call.points);
    return {forward(x, call), map};
  }
  const auto [attended, map] = attention->forward_with_map(normalise(norm1, x), call);
  return {add_residuals(x, attended, call), map};
}

}  // namespace translution
