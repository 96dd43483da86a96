#include "translution/nn/attention.h"

#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "translution/core/error.h"
#include "translution/nn/linear.h"
#include "translution/ops/convolution.h"
#include "translution/ops/implementation.h"
#include "translution/ops/large.h"
#include "translution/ops/rotary.h"
#include "translution/ops/runs.h"

namespace translution {
namespace {

// Vectors and numbers per offset start small, so that training begins as plain attention.
constexpr double kSmall = 0.02;
// The gate starts open to position and the positional attention local, as in ConViT.
constexpr double kGateStart = 1.0;
constexpr double kRotaryBase = 10000;
// Keeps heads * dim_head and heads * relative_dim far from overflow.
constexpr int64_t kMaxWidth = int64_t{1} << 30;

OffsetOptions offset_options(const AttentionOptions& options) {
  return options.position().offsets(options.grid(), options.cls(), options.causal());
}

int64_t slot_count(const AttentionOptions& options) {
  return options.relation() ? options.relation()->num_slots()
                            : count_slots(offset_options(options));
}

// What positional attention knows of an offset: its coordinates and squared length; a class
// token's three directions are told apart by one feature each.
int64_t position_feature_count(const AttentionOptions& options) {
  return static_cast<int64_t>(options.grid().size()) + 1 + (options.cls() ? 3 : 0);
}

torch::Tensor position_features(const OffsetTable& table) {
  const auto& options = table.options();
  const int64_t axes = static_cast<int64_t>(options.grid.size());
  auto features = torch::zeros({table.num_slots(), axes + 1 + (options.cls ? 3 : 0)});
  auto at = features.accessor<float, 2>();
  int64_t cls_feature = axes + 1;
  for (int64_t slot = 0; slot < table.num_slots(); ++slot) {
    const auto offset = table.offset(slot);
    if (!offset) {
      at[slot][cls_feature++] = 1;
      continue;
    }
    for (int64_t axis = 0; axis < axes; ++axis) {
      const auto d = static_cast<float>((*offset)[axis]);
      at[slot][1 + axis] = d;
      at[slot][0] += d * d;
    }
  }
  return features;
}

// Nothing in the layer knows the places of its tokens.
bool takes_any_length(const AttentionOptions& o) {
  return o.grid().empty() && !o.relation() && !o.position().uses_offsets() &&
         !o.position().rotates();
}

void check_options(const AttentionOptions& o) {
  require(o.dim() > 0, "attention: wanted dim of 1 or more, got ", o.dim());
  require(o.heads() > 0, "attention: wanted one or more heads, got ", o.heads());
  require(o.dim_head() > 0, "attention: wanted dim_head of 1 or more, got ", o.dim_head());
  const bool alpha = o.position().method == Method::alpha_translution;
  const int64_t widest = alpha ? std::max(o.dim_head(), o.position().relative_dim) : o.dim_head();
  require(o.dim() <= kMaxWidth && o.heads() <= kMaxWidth / widest, "attention: dim ", o.dim(),
          " or ", o.heads(), " heads of ", widest, " channels are wider than ", kMaxWidth);
  require(o.dropout() >= 0 && o.dropout() < 1,
          "attention: wanted a dropout probability in [0, 1), got ", o.dropout());
  require(o.workspace() >= 0, "attention: wanted a workspace of 0 or more bytes, got ",
          o.workspace());
  o.position().check();
  require(!o.qkv_bias() || o.position().shares_qkv(), "attention: qkv_bias goes with methods that ",
          "have one W^q, W^k, W^v for all offsets, not with ",
          name_of(kMethods, o.position().method));
  if (!o.relation()) {
    if (!takes_any_length(o)) count_tokens({o.grid(), o.cls(), o.causal()});
    return;
  }
  require(o.position().method != Method::gated_position,
          "attention: gated_position needs the offsets of a grid, not a relation");
  require(!o.position().rotates(), "attention: rotary needs the places of a grid, not a relation");
}

void add_role(std::vector<ParameterSpec>& specs, const char* name, bool relative, int64_t slots,
              int64_t in, int64_t width) {
  specs.push_back(
      {name, relative ? std::vector<int64_t>{slots, in, width} : std::vector<int64_t>{in, width},
       in, relative});
}

void add_alpha(std::vector<ParameterSpec>& specs, const AttentionOptions& o, int64_t slots,
               int64_t width) {
  const Position& p = o.position();
  const int64_t small = p.relative_dim * o.heads();
  if (small == 0) return;
  const auto role = [&](const char* down, const char* table, bool relative) {
    specs.push_back({down, {o.dim(), small}, o.dim()});
    if (relative) specs.push_back({table, {slots, small, small}, small, true});
  };
  if (p.roles.q || p.roles.k || !p.shared_qkv) {
    role("query_down", "query_offsets", p.roles.q);
    role("key_down", "key_offsets", p.roles.k);
  }
  if (p.roles.v || !p.shared_qkv) {
    role("value_down", "value_offsets", p.roles.v);
    specs.push_back({"value_up", {small, width}, small});
  }
}

}  // namespace

int64_t ParameterSpec::count() const {
  int64_t product = 1;
  for (const int64_t side : shape) {
    require(side == 0 || product <= std::numeric_limits<int64_t>::max() / side, "parameter ", name,
            " of shape ", times(shape), " is too large to count");
    product *= side;
  }
  return product;
}

std::vector<ParameterSpec> attention_parameters(const AttentionOptions& o) {
  check_options(o);
  const Position& p = o.position();
  const int64_t slots = p.uses_offsets() ? slot_count(o) : 0;
  const int64_t width = o.heads() * o.dim_head();
  std::vector<ParameterSpec> specs;
  if (p.method == Method::convolution) {
    add_role(specs, "kernel", true, slots, o.dim(), width);
    return specs;
  }
  const bool full = p.method == Method::translution;
  if (p.method != Method::alpha_translution || p.shared_qkv) {
    add_role(specs, "query", full && p.roles.q, slots, o.dim(), width);
    add_role(specs, "key", full && p.roles.k, slots, o.dim(), width);
    add_role(specs, "value", full && p.roles.v, slots, o.dim(), width);
  }
  if (o.qkv_bias())
    for (const char* name : {"query_bias", "key_bias", "value_bias"})
      specs.push_back({name, {width}});
  if (p.method == Method::alpha_translution) add_alpha(specs, o, slots, width);
  if (p.method == Method::relative_key) specs.push_back({"key_vectors", {slots, width}, 0, true});
  if (p.method == Method::relative_value)
    specs.push_back({"value_vectors", {slots, width}, 0, true});
  if (p.method == Method::relative_bias) specs.push_back({"bias", {slots, o.heads()}, 0, true});
  if (p.method == Method::gated_position) {
    specs.push_back({"position_weight", {position_feature_count(o), o.heads()}});
    specs.push_back({"gate", {o.heads()}});
  }
  return specs;
}

AttentionImpl::AttentionImpl(AttentionOptions options_) : options(std::move(options_)) { reset(); }

void AttentionImpl::reset() {
  const auto specs = attention_parameters(options);
  for (const auto& spec : specs) {
    auto parameter = register_parameter(spec.name, large_empty(spec.shape, torch::kFloat));
    start(spec, parameter);
  }
  const int64_t width = options.heads() * options.dim_head();
  out = register_module("out", torch::nn::Linear(width, options.dim()));
  const Position& position = options.position();
  if (position.uses_offsets())
    offsets_ = options.relation() ? options.relation()
                                  : std::make_shared<const OffsetTable>(offset_options(options));
  if (position.method == Method::gated_position) position_features_ = position_features(*offsets_);
  if (position.rotates())
    angles_ = rotary_angles(options.grid(), options.cls(), options.dim_head(), kRotaryBase,
                            position.angles);
}

void AttentionImpl::start(const ParameterSpec& spec, torch::Tensor& parameter) const {
  if (options.init() == Init::none) return;
  torch::NoGradGuard no_grad;
  if (spec.fan_in > 0) {
    const bool table = spec.shape.size() == 3 && options.init() == Init::authors;
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

torch::Tensor AttentionImpl::weight(const char* name) const {
  const auto* found = parameters_.find(name);
  return found ? *found : torch::Tensor();
}

CallOptions AttentionImpl::call_options(const torch::Tensor& x, const torch::Tensor& rows,
                                        bool map) {
  TORCH_CHECK(x.defined(), "attention: x [B, N, ", options.dim(), "] is missing");
  TORCH_CHECK(x.dim() == 3 && x.size(2) == options.dim(), "attention: x must be [B, N, ",
              options.dim(), "], got ", x.sizes());
  const int64_t tokens = x.size(1);
  check_length(tokens);
  CallOptions call;
  call.heads = options.heads();
  call.causal = options.causal();
  call.rows = rows;
  call.dropout = is_training() ? options.dropout() : 0.0;
  call.map = map;
  call.workspace = options.workspace();
  if (angles_.defined()) call.angles = angles_.narrow(0, 0, tokens);
  if (offsets_) {
    if (runs_tokens_ != tokens) {
      runs_ = runs_to_tensor(clip_runs(offsets_->runs(), tokens));
      runs_tokens_ = tokens;
    }
    call.runs = runs_;
  }
  return call;
}

void AttentionImpl::check_length(int64_t tokens) const {
  if (takes_any_length(options)) return;
  const int64_t most = options.relation()
                           ? options.relation()->num_tokens()
                           : count_tokens({options.grid(), options.cls(), options.causal()});
  const bool shorter = !options.relation() && options.grid().size() == 1;
  TORCH_CHECK(tokens == most || (shorter && tokens > 0 && tokens < most), "attention: x has ",
              tokens, " tokens, this layer was built for ", shorter ? "1 to " : "", most);
}

Attended AttentionImpl::convolve(const torch::Tensor& x, const CallOptions& call) {
  Attended result;
  result.out = convolution(x, weight("kernel"), call.runs, call.rows, call.causal);
  if (!call.map) return result;
  auto window = torch::zeros({x.size(1), x.size(1)}, x.options());  // [N,N], one inside the window
  for (const Run& run : runs_from_tensor(call.runs))
    for (int64_t t = 0; t < run.length; ++t)
      window.index_put_({run.i + t * run.di, run.j + t * run.dj}, 1);
  if (call.causal) window.tril_();
  if (call.rows.defined()) window = window.index_select(0, call.rows.to(x.device()));
  result.map = window.expand({x.size(0), call.heads, window.size(0), window.size(1)});
  return result;
}

Attended AttentionImpl::attend(const torch::Tensor& x, const CallOptions& call) {
  const RoleWeights shared{weight("query"), weight("key"), weight("value")};
  switch (options.position().method) {
    case Method::translution:
      return translution(x, shared, call);
    case Method::alpha_translution:
      return alpha_translution(
          x,
          {shared,
           {weight("query_down"), weight("key_down"), weight("value_down")},
           {weight("query_offsets"), weight("key_offsets"), weight("value_offsets")},
           weight("value_up")},
          call, options.position().mixing);
    case Method::convolution:
      return convolve(x, call);
    default:
      break;
  }
  PositionTerms terms{
      weight("key_vectors"), weight("value_vectors"),
      weight("bias"),        {},
      weight("gate"),        {weight("query_bias"), weight("key_bias"), weight("value_bias")}};
  if (terms.gate.defined()) {
    const auto scores = weight("position_weight");
    terms.position = position_features_.to(scores.options().requires_grad(false)).mm(scores);
  }
  return self_attention(x, shared, terms, call);
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& rows) {
  return multiply(out, attend(x, call_options(x, rows, /*map=*/false)).out);
}

std::pair<torch::Tensor, torch::Tensor> AttentionImpl::forward_with_map(const torch::Tensor& x,
                                                                        const torch::Tensor& rows) {
  const auto attended = attend(x, call_options(x, rows, /*map=*/true));
  return {multiply(out, attended.out), attended.map};
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
  return Lookahead({weight("query"), weight("key"), weight("value")}, offsets_, options.heads());
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
