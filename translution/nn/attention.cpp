#include "translution/nn/attention.h"

#include <torch/nn/init.h>

#include <cmath>

#include "translution/core/error.h"
#include "translution/nn/attend.h"
#include "translution/nn/linear.h"
#include "translution/ops/implementation.h"
#include "translution/ops/large.h"

namespace translution {
namespace {

// Vectors and numbers per offset start small, so that training begins as plain attention.
constexpr double kSmall = 0.02;
// The gate starts open to position and the positional attention local, as in ConViT.
constexpr double kGateStart = 1.0;

void start(const ParameterSpec& spec, Init init, at::Tensor& parameter) {
  if (init == Init::none) return;
  torch::NoGradGuard no_grad;
  if (spec.fan_in > 0) {
    const bool table = spec.shape.size() == 3 && init == Init::authors;
    const double fan = static_cast<double>(spec.fan_in * (table ? spec.shape[2] : 1));
    parameter.uniform_(-1 / std::sqrt(fan), 1 / std::sqrt(fan));
    return;
  }
  if (spec.name.find("_bias") != std::string::npos) {
    parameter.zero_();
    return;
  }
  if (spec.name == "gate") {
    parameter.fill_(kGateStart);
    return;
  }
  parameter.normal_(0, kSmall);
  if (spec.name == "position_weight") parameter[0].fill_(-1);  // nearer is stronger
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> start_attention(const AttentionOptions& options,
                                                                const at::TensorOptions& tensors) {
  std::vector<std::pair<std::string, at::Tensor>> started;
  for (const auto& spec : attention_parameters(options)) {
    auto parameter = large_empty(spec.shape, tensors);
    start(spec, options.init(), parameter);
    started.emplace_back(spec.name, parameter);
  }
  return started;
}

at::Tensor start_vectors(at::IntArrayRef shape, Init init, const at::TensorOptions& tensors) {
  auto vectors = torch::empty(shape, tensors);
  return init == Init::none ? vectors : vectors.normal_(0, init == Init::authors ? 1.0 : kSmall);
}

AttentionImpl::AttentionImpl(AttentionOptions options_) : options(std::move(options_)) { reset(); }

void AttentionImpl::reset() {
  for (const auto& [name, parameter] : start_attention(options))
    register_parameter(name, parameter);
  const int64_t width = options.heads() * options.dim_head();
  out = register_module("out", torch::nn::Linear(width, options.dim()));
  offsets_ = offsets_of(options);
  tables_ = attention_tables(options, offsets_.get());
}

Attended AttentionImpl::attended(const torch::Tensor& x, const torch::Tensor& rows,
                                 bool map) const {
  check_input(x, options.dim(), tables_);
  const int64_t tokens = x.size(1);
  CallOptions call;
  call.heads = options.heads();
  call.runs = runs_of(tables_, tokens);
  call.causal = options.causal();
  call.rows = rows;
  call.dropout = is_training() ? options.dropout() : 0.0;
  if (tables_.angles.defined()) call.angles = tables_.angles.narrow(0, 0, tokens);
  call.map = map;
  call.workspace = options.workspace();
  const auto weight = [&](const char* name) {
    const auto* found = parameters_.find(name);
    return found ? *found : torch::Tensor();
  };
  return attend(x, options.position(), weight, tables_.position_features, call);
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& rows) {
  return multiply(out, attended(x, rows, /*map=*/false).out);
}

std::pair<torch::Tensor, torch::Tensor> AttentionImpl::forward_with_map(const torch::Tensor& x,
                                                                        const torch::Tensor& rows) {
  const auto result = attended(x, rows, /*map=*/true);
  return {multiply(out, result.out), result.map};
}

std::optional<Lookahead> AttentionImpl::lookahead() const {
  const Position& position = options.position();
  const auto& weights = out->weight;
  const bool fits = position.method == Method::translution && position.roles == Roles{} &&
                    options.causal() && options.grid().size() == 1 && !options.cls() &&
                    !options.relation();
  const auto type = weights.scalar_type();
  const bool floats = type == torch::kFloat || type == torch::kDouble;
  if (!fits || !floats || !weights.device().is_cpu() || !kernels_wanted()) return {};
  return Lookahead({parameters_["query"], parameters_["key"], parameters_["value"]}, offsets_,
                   options.heads());
}

namespace {

AttentionOptions with_method(AttentionOptions options, Method method) {
  options.position().method = method;
  return options;
}

}  // namespace

Translution::Translution(AttentionOptions options)
    : Attention(with_method(std::move(options), Method::translution)) {}

AlphaTranslution::AlphaTranslution(AttentionOptions options)
    : Attention(with_method(std::move(options), Method::alpha_translution)) {}

}  // namespace translution
