#include "translution/nn/attention.h"

#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "translution/core/error.h"
#include "translution/nn/linear.h"
#include "translution/ops/compat.h"
#include "translution/ops/constant.h"
#include "translution/ops/convolution.h"
#include "translution/ops/large.h"
#include "translution/ops/rotary.h"
#include "translution/ops/runtime.h"

namespace translution {

using namespace detail;

namespace {

// Vectors and biases per offset are initialised small, so that training begins as plain attention.
constexpr double kSmall = 0.02;
// Initially the gate is open to position and the positional attention is local, as in ConViT.
constexpr double kInitialGate = 1.0;
constexpr double kRotaryBase = 10000;

void initialise(const ParameterSpec& spec, Init init, const at::Generator& generator,
                at::Tensor& parameter) {
  if (init == Init::none) return;
  torch::NoGradGuard no_grad;
  if (spec.fan_in > 0) {
    const bool table = spec.shape.size() == 3 && init == Init::authors;
    const double fan = static_cast<double>(spec.fan_in * (table ? spec.shape[2] : 1));
    parameter.uniform_(-1 / std::sqrt(fan), 1 / std::sqrt(fan), optional(generator));
    if (spec.shape.size() == 3) parameter.slice(1, spec.fan_in).zero_();  // bias rows
    return;
  }
  if (spec.name.find("_bias") != std::string::npos) {
    parameter.zero_();
    return;
  }
  if (spec.name == "gate") {
    parameter.fill_(kInitialGate);
    return;
  }
  parameter.normal_(0, kSmall, optional(generator));
  if (spec.name == "position_weight") parameter[0].fill_(-1);  // nearer is stronger
}

// Draws the whole table, one matrix at a time, and keeps the rows of the part.
void initialise_rows(const ParameterSpec& spec, const TableRows& table, Init init,
                     const at::Generator& generator, at::Tensor& parameter) {
  if (init == Init::none) return;
  std::vector<int64_t> place(table.all, -1);
  for (size_t row = 0; row < table.rows.size(); ++row)
    place[table.rows[row]] = static_cast<int64_t>(row);
  auto one = spec;
  one.shape[0] = 1;
  auto matrix = torch::empty(one.shape, parameter.options());
  for (const int64_t row : place) {
    initialise(one, init, generator, matrix);
    if (row >= 0) parameter[row].copy_(matrix[0]);
  }
}

// The features of an offset [M, F] that positional attention reads: its squared length, its
// coordinates and, with a class token, a one-hot encoding of the class token's three slots.
at::Tensor make_position_features(const OffsetTable& table) {
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

// The text of the pairs of all slots.
std::string whole_pairs(const AttentionOptions& o) {
  if (!o.position().uses_offsets()) return o.causal() ? "causal" : "";
  if (o.relation()) return pairs_text(*o.relation(), o.causal());
  return pairs_text(o.position().offsets(o.grid(), o.cls(), o.causal()));
}

// Whether the layer has a part of a table only.
bool is_split(const AttentionOptions& o) {
  if (o.share().part.count == 1) return false;
  const auto specs = attention_parameters(o);
  return std::any_of(specs.begin(), specs.end(), [](const auto& spec) { return spec.is_split(); });
}

int64_t count_places(const std::vector<int64_t>& grid) {
  return std::accumulate(grid.begin(), grid.end(), int64_t{1}, std::multiplies<>());
}

// Tokens in front of the grid: 1 for a class token.
int64_t cls_tokens(const AttentionLayout& layout) {
  return layout.tokens - count_places(layout.grid);
}

// Checks a grid that is named in a call.
void check_grid(const std::vector<int64_t>& grid, const AttentionLayout& layout,
                const c10::SymInt& tokens) {
  const char* const built = layout.tokens > 0 ? "for a relation" : "without a grid";
  TORCH_CHECK(!layout.grid.empty(), "attention: got the grid ", times(grid),
              ", but this layer was built ", built, "; leave out the grid");
  const int64_t least = 1 - cls_tokens(layout);  // a class token may be alone
  const bool fits = std::equal(
      grid.begin(), grid.end(), layout.grid.begin(), layout.grid.end(),
      [least](int64_t side, int64_t largest) { return side >= least && side <= largest; });
  TORCH_CHECK(fits, "attention: expected a grid of at most ", times(layout.grid), ", got ",
              times(grid), "; build the layer for the largest grid");
  const int64_t expected = count_places(grid) + cls_tokens(layout);
  TORCH_CHECK(tokens == expected, "attention: x has ", tokens, " tokens, the grid ", times(grid),
              cls_tokens(layout) > 0 ? " with class token has " : " has ", expected);
}

void check_input(const at::Tensor& x, int64_t dim, const AttentionLayout& layout,
                 const std::vector<int64_t>& grid) {
  TORCH_CHECK(x.defined(), "attention: x [B, N, ", dim, "] is missing");
  TORCH_CHECK(x.dim() == 3 && x.sym_size(2) == dim, "attention: x must be [B, N, ", dim, "], got ",
              x.sym_sizes());
  const auto tokens = x.sym_size(1);
  if (!grid.empty()) return check_grid(grid, layout, tokens);
  if (layout.tokens == 0) return;
  // The order matters: a comparison that is not needed would specialise a symbolic token count.
  TORCH_CHECK(layout.shorter ? tokens > 0 && tokens <= layout.tokens : tokens == layout.tokens,
              "attention: x has ", tokens, " tokens, this layer was built for ",
              layout.shorter ? "1 to " : "", layout.tokens);
}

// The angles of the tokens of x: of the first ones, or of those of a smaller grid.
at::Tensor angles_of(const AttentionLayout& layout, const std::vector<int64_t>& grid,
                     const c10::SymInt& tokens) {
  if (grid.empty()) return layout.angles.slice_symint(0, 0, tokens);
  const int64_t cls = cls_tokens(layout);
  auto shape = layout.grid;
  shape.push_back(-1);
  auto angles = layout.angles.slice(0, cls).view(shape);
  for (size_t axis = 0; axis < grid.size(); ++axis) angles = angles.narrow(axis, 0, grid[axis]);
  return at::cat({layout.angles.slice(0, 0, cls), angles.flatten(0, -2)});
}

// Every score is 1, so the map is 1 inside the window and 0 outside and at padding.
MethodResult convolve(const at::Tensor& x, const at::Tensor& kernel, const AttentionCall& call) {
  MethodResult result{convolution(x, kernel, call.pairs, call.precision, call.mask, call.group),
                      {}};
  if (!call.map) return result;
  auto name = call.pairs;
  name.tokens = x.sym_size(1).guard_int(__FILE__, __LINE__);
  const auto pairs = find_pairs(name);
  const auto open = constant_tensor({pairs->open().begin(), pairs->open().end()}).to(x.options());
  result.map = open.view({pairs->queries(), pairs->tokens()})
                   .expand_symint({x.sym_size(0), call.heads, pairs->queries(), pairs->tokens()});
  if (call.mask.defined()) result.map = result.map * call.mask.unsqueeze(1).unsqueeze(1);
  return result;
}

// Self-attention with the method's position terms.
MethodResult attend_with_position(const at::Tensor& x, const RoleWeights& shared,
                                  const RoleWeights& biases, const at::Tensor& features,
                                  const WeightOf& weight, const AttentionCall& call) {
  PositionTerms terms{
      weight("key_vectors"), weight("value_vectors"), weight("bias"), {}, weight("gate"), biases};
  if (terms.gate.defined()) {
    auto scores = weight("position_weight");
    if (call.precision == Precision::bf16) scores = scores.to(at::kFloat);  // scores stay float32
    terms.position = project(features.to(scores.options().requires_grad(false)), {scores})[0];
  }
  return self_attention(x, shared, terms, call);
}

}  // namespace

AttentionLayout attention_layout(const AttentionOptions& o) {
  AttentionLayout layout;
  layout.pairs = whole_pairs(o);
  if (is_split(o)) {
    layout.pairs += part_text(o.share().part);
    layout.group = o.share().group;
  }
  if (!takes_any_length(o))
    layout.tokens =
        o.relation() ? o.relation()->num_tokens() : count_tokens({o.grid(), o.cls(), o.causal()});
  layout.shorter = !o.relation() && o.grid().size() == 1;
  if (!o.relation()) layout.grid = o.grid();
  if (o.position().method == Method::gated_position)
    layout.position_features = make_position_features(*find_offsets(layout.pairs));
  if (o.position().rotates())
    layout.angles =
        rotary_angles(o.grid(), o.cls(), o.dim_head(), kRotaryBase, o.position().angles);
  return layout;
}

MethodResult apply_method(const at::Tensor& x, int64_t dim, const Position& position,
                          const AttentionLayout& layout, const WeightOf& weight, AttentionCall call,
                          double dropout, const at::Generator& generator) {
  check_input(x, dim, layout, call.pairs.grid);
  call.pairs.text = layout.pairs;
  call.group = layout.group;
  if (layout.angles.defined()) call.angles = angles_of(layout, call.pairs.grid, x.sym_size(1));
  if (!x.device().is_cpu()) call.workspace = 0;  // only the CPU kernels save encodings
  const RoleWeights shared{weight("query"), weight("key"), weight("value")};
  const RoleWeights biases{weight("query_bias"), weight("key_bias"), weight("value_bias")};
  if (position.method == Method::convolution) return convolve(x, weight("kernel"), call);
  call.keep = dropout_mask(dropout, x, call, generator);
  if (position.method == Method::translution) return translution(x, shared, call, biases);
  if (position.method == Method::alpha_translution)
    return alpha_translution(
        x,
        {shared,
         {weight("query_down"), weight("key_down"), weight("value_down")},
         {weight("query_offsets"), weight("key_offsets"), weight("value_offsets")},
         weight("value_up"),
         biases},
        call, position.mixing);
  return attend_with_position(x, shared, biases, layout.position_features, weight, call);
}

std::vector<int64_t> query_rows(const at::Tensor& rows) {
  if (!rows.defined()) return {};
  TORCH_CHECK(rows.dim() == 1 && rows.scalar_type() == at::kLong && !rows.is_meta(),
              "attention: rows must be a vector of int64 token indices, got ", rows.scalar_type(),
              " ", rows.sizes());
  TORCH_CHECK(rows.size(0) > 0, "attention: rows is empty; name one or more query rows");
  const auto on_cpu = rows.to(at::kCPU).contiguous();
  return {on_cpu.data_ptr<int64_t>(), on_cpu.data_ptr<int64_t>() + on_cpu.numel()};
}

std::map<std::string, TableRows> table_rows(const AttentionOptions& options) {
  std::map<std::string, TableRows> tables;
  if (!is_split(options)) return tables;
  const auto offsets = options.relation() ? options.relation() : find_offsets(whole_pairs(options));
  const TableRows rows{offsets->num_slots(), slots_of(*offsets, options.share().part)};
  TableRows mirrored = rows;
  for (int64_t& row : mirrored.rows) row = offsets->mirror()[row];
  for (const auto& spec : attention_parameters(options))
    if (spec.is_split()) tables[spec.name] = spec.name.rfind("key", 0) == 0 ? mirrored : rows;
  return tables;
}

std::vector<std::pair<std::string, at::Tensor>> start_attention(const AttentionOptions& options,
                                                                const at::TensorOptions& tensors,
                                                                const at::Generator& generator) {
  const auto split = table_rows(options);
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& spec : attention_parameters(options)) {
    auto parameter = large_empty(spec.shape, tensors);
    if (const auto table = split.find(spec.name); table != split.end())
      initialise_rows(spec, table->second, options.init(), generator, parameter);
    else
      initialise(spec, options.init(), generator, parameter);
    parameters.emplace_back(spec.name, parameter);
  }
  return parameters;
}

at::Tensor start_vectors(at::IntArrayRef shape, Init init, const at::TensorOptions& tensors,
                         const at::Generator& generator) {
  auto vectors = torch::empty(shape, tensors);
  if (init == Init::none) return vectors;
  return vectors.normal_(0, init == Init::authors ? 1.0 : kSmall, optional(generator));
}

AttentionImpl::AttentionImpl(AttentionOptions options_, const at::Generator& generator)
    : options(std::move(options_)) {
  initialise(generator);
}

void AttentionImpl::reset() { initialise({}); }

void AttentionImpl::initialise(const at::Generator& generator) {
  for (const auto& [name, parameter] : start_attention(options, torch::kFloat, generator))
    register_parameter(name, parameter);
  const int64_t width = options.heads() * options.dim_head();
  out = register_module("out", make_linear(width, options.dim(), options.init(), generator));
  layout_ = attention_layout(options);
  const bool has_relation = options.position().uses_offsets() && options.relation();
  offsets_ = has_relation ? options.relation() : find_offsets(layout_.pairs);
}

WeightOf AttentionImpl::weights() const {
  return [this](const char* name) {
    const auto* found = parameters_.find(name);
    return found ? *found : torch::Tensor();
  };
}

MethodResult AttentionImpl::attend(const torch::Tensor& x, const AttendOptions& call,
                                   bool map) const {
  AttentionCall method;
  method.pairs.grid = call.grid;
  method.pairs.rows = query_rows(call.rows);
  method.mask = call.key_padding_mask;
  method.heads = options.heads();
  method.map = map;
  method.workspace = options.workspace();
  method.precision = options.precision();
  return apply_method(x, options.dim(), options.position(), layout_, weights(), std::move(method),
                      is_training() ? options.dropout() : 0.0, call.generator);
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x, const AttendOptions& call) {
  return multiply(out, attend(x, call, /*map=*/false).out, options.precision());
}

std::pair<torch::Tensor, torch::Tensor> AttentionImpl::forward_with_map(const torch::Tensor& x,
                                                                        const AttendOptions& call) {
  const auto result = attend(x, call, /*map=*/true);
  return {multiply(out, result.out, options.precision()), result.map};
}

std::optional<Lookahead> AttentionImpl::lookahead() const {
  const Position& position = options.position();
  const bool fits = position.method == Method::translution && position.roles == Roles{} &&
                    options.causal() && options.grid().size() == 1 && !options.cls() &&
                    !options.relation() && options.share().part.count == 1;
  if (!fits || !runtime().fused()) return {};
  const auto& query = parameters_["query"];
  const auto type = query.scalar_type();
  const bool supported =
      type == torch::kFloat || type == torch::kDouble || type == torch::kBFloat16;
  if (!supported || !query.device().is_cpu()) return {};
  return Lookahead({query, parameters_["key"], parameters_["value"]}, offsets_, options.heads(),
                   options.precision());
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
