#include "tests/support/cases.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "translution/core/error.h"
#include "translution/ops/convolution.h"
#include "translution/ops/rotary.h"

namespace translution::testing {

using namespace detail;

namespace {

uint64_t fnv1a(const std::string& text) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

at::Tensor get(const Inputs& inputs, const std::string& name) {
  const auto found = inputs.find(name);
  return found == inputs.end() ? at::Tensor() : found->second;
}

RoleWeights get_roles(const Inputs& inputs, const std::string& prefix) {
  return {get(inputs, prefix + "q"), get(inputs, prefix + "k"), get(inputs, prefix + "v")};
}

AlphaWeights alpha_weights(const Inputs& inputs) {
  return {get_roles(inputs, ""), get_roles(inputs, "down_"), get_roles(inputs, "table_"),
          get(inputs, "up"), get_roles(inputs, "bias_")};
}

// Shared weights [C, E] with their biases as a last row, as the oracle takes them.
RoleWeights with_bias_rows(const Inputs& inputs) {
  auto weights = get_roles(inputs, "");
  const auto biases = get_roles(inputs, "bias_");
  for (const auto& [weight, bias] :
       {std::pair{&weights.q, biases.q}, std::pair{&weights.k, biases.k},
        std::pair{&weights.v, biases.v}})
    if (bias.defined()) *weight = at::cat({*weight, bias.unsqueeze(0)});
  return weights;
}

PositionTerms position_terms(const Inputs& inputs) {
  return {get(inputs, "key_vectors"), get(inputs, "value_vectors"), get(inputs, "bias"),
          get(inputs, "position"),    get(inputs, "gate"),          get_roles(inputs, "bias_")};
}

bool uses_offsets(const Config& c) {
  return !c.relation.empty() || (c.method != Method::self_attention_no_pos &&
                                 c.method != Method::self_attention && c.method != Method::rotary);
}

OffsetOptions offset_options(const Config& c) {
  OffsetOptions options;
  options.grid = c.grid;
  options.cls = c.cls;
  options.causal = c.causal && !c.mask_only;
  options.encoding = c.encoding;
  options.sharing = c.method == Method::convolution ? Sharing::window : c.sharing;
  options.radius = c.radius;
  return options;
}

oracle::Pairing pair_tokens(const Config& c) {
  if (!uses_offsets(c)) return oracle::pair_all(c.tokens());
  if (!c.relation.empty()) return oracle::pair_relation(c.relation, c.tokens(), c.mirror);
  return oracle::pair_grid(offset_options(c));
}

std::string pairs_of(const Config& c) {
  if (!uses_offsets(c)) return c.causal ? "causal" : "";
  if (c.relation.empty()) return pairs_text(OffsetTable(offset_options(c)), c.causal);
  const auto slots = static_cast<int64_t>(c.mirror.size());
  return pairs_text(OffsetTable::from_relation(c.relation, c.tokens(), slots, c.mirror), c.causal);
}

// Shapes by name. Matrices are [in, out] or [slots, in, out].
std::map<std::string, std::vector<int64_t>> shapes(const Config& c, int64_t M) {
  const int64_t E = c.H * c.D, r = c.H * c.R, r_out = c.R_out > 0 ? c.H * c.R_out : r;
  std::map<std::string, std::vector<int64_t>> shape{{"x", {c.B, c.tokens(), c.C}}};
  const auto shared = [&](const char* role) {
    shape[role] = {c.C, E};
    if (c.biases) shape[join("bias_", role)] = {E};
  };
  const std::pair<const char*, bool> roles[] = {
      {"q", c.roles.q}, {"k", c.roles.k}, {"v", c.roles.v}};
  switch (c.method) {
    case Method::translution:
      for (const auto& [role, relative] : roles) {
        shared(role);
        if (!relative) continue;
        shape[role] = {M, c.C + (c.biases ? 1 : 0), E};
        shape.erase(join("bias_", role));
      }
      return shape;
    case Method::alpha_translution:
      for (const auto& [role, relative] : roles) {
        if (c.shared) shared(role);
        const bool score = role[0] != 'v';
        if (!c.shared || relative || (score && (c.roles.q || c.roles.k)))
          shape[join("down_", role)] = {c.C, relative ? r : r_out};
        if (relative) shape[join("table_", role)] = {M, r, r_out};
      }
      if (!c.shared || c.roles.v) shape["up"] = {r_out, E};
      return shape;
    case Method::convolution:
      shape["kernel"] = {M, c.C, E};
      return shape;
    default:
      for (const auto& role : roles) shared(role.first);
  }
  if (c.method == Method::relative_key) shape["key_vectors"] = {M, E};
  if (c.method == Method::relative_value) shape["value_vectors"] = {M, E};
  if (c.method == Method::relative_bias) shape["bias"] = {M, c.H};
  if (c.method == Method::gated_position) shape["position"] = {M, c.H}, shape["gate"] = {c.H};
  return shape;
}

bool rotates(const Config& c) { return c.rotary || c.method == Method::rotary; }

}  // namespace

bool runs_portable() {
  const char* const impl = std::getenv("TRANSLUTION_IMPL");
  return impl != nullptr && std::string(impl) == "portable";
}

at::Generator generator(const std::string& name) {
  static const bool printed = [] {
    std::printf("random inputs start from seed %llu and the name of their case\n",
                static_cast<unsigned long long>(kSeed));
    return true;
  }();
  (void)printed;
  return at::detail::createCPUGenerator(kSeed ^ fnv1a(name));
}

at::Tensor normal(at::IntArrayRef shape, at::Generator& random) {
  return at::empty(shape, at::kDouble).normal_(0, 1, random);
}

at::Tensor random_mask(int64_t batch, int64_t tokens, at::Generator& random) {
  return normal({batch, tokens}, random) > -0.4;
}

int64_t Config::tokens() const {
  if (!relation.empty()) return std::llround(std::sqrt(static_cast<double>(relation.size())));
  int64_t tokens = 1;
  for (const int64_t side : grid) tokens *= side;
  return tokens + (cls ? 1 : 0);
}

std::string Config::str() const {
  std::string text = join(name_of(kMethods, method), " roles ", roles.str(), " grid ", times(grid),
                          " B", B, " C", C, " H", H, " D", D, " R", R);
  const auto add = [&](bool is, const std::string& word) { text += is ? " " + word : ""; };
  add(R_out > 0, join("to R", R_out));
  add(cls, "cls");
  add(causal, mask_only ? "causal by mask" : "causal");
  add(encoding == Encoding::absolute, "absolute");
  add(sharing != Sharing::none || method == Method::convolution,
      join(sharing == Sharing::none ? "window" : name_of(kSharings, sharing), " radius ", radius));
  add(!shared, "not shared");
  add(mixing == Mixing::mean, "mean");
  add(rotary, "rotary");
  add(dropout > 0, join("dropout ", dropout));
  add(biases, "biases");
  add(mask, "mask");
  add(precision == Precision::bf16, "bf16");
  add(!rows.empty(), join("rows ", times(rows)));
  add(!relation.empty(), join("relation ", times(relation), " mirror ", times(mirror)));
  return text;
}

Case::Case(Config config)
    : config_(std::move(config)), pairing_(pair_tokens(config_)), pairs_(pairs_of(config_)) {
  auto random = generator(config_.str());
  for (const auto& [name, shape] : shapes(config_, pairing_.slots)) {
    const bool matrix = name != "x" && name != "position" && name != "bias" && shape.size() > 1;
    const double fan = matrix ? static_cast<double>(shape[shape.size() - 2]) : 1.0;
    inputs_[name] = normal(shape, random) / std::sqrt(fan);
  }
  if (config_.mask) mask_ = random_mask(config_.B, config_.tokens(), random);
}

Inputs Case::inputs_as(at::TensorOptions options) const {
  Inputs converted;
  for (const auto& [name, tensor] : inputs_) converted[name] = tensor.to(options);
  return converted;
}

Inputs Case::inputs_with_grad() const {
  Inputs leaves;
  for (const auto& [name, tensor] : inputs_) leaves[name] = tensor.clone().requires_grad_(true);
  return leaves;
}

AttentionCall Case::call() const {
  AttentionCall call;
  call.heads = config_.H;
  call.pairs = {pairs_, {}, config_.rows};
  call.precision = config_.precision;
  call.mask = mask_;
  if (rotates(config_)) call.angles = rotary_angles(config_.grid, config_.cls, config_.D);
  return call;
}

oracle::Call Case::oracle_call() const {
  oracle::Call call;
  call.pairing = pairing_;
  call.heads = config_.H;
  call.causal = config_.causal;
  call.rows = config_.rows;
  call.mask = mask_;
  if (rotates(config_)) call.rotary_grid = config_.grid, call.rotary_cls = config_.cls;
  at::manual_seed(kSeed);
  call.keep = dropout_mask(config_.dropout, get(inputs_, "x"), this->call());
  return call;
}

MethodResult Case::attend(const Inputs& inputs, bool map) const {
  const auto x = get(inputs, "x");
  auto call = this->call();
  call.map = map;
  if (config_.method == Method::convolution)
    return {translution::convolution(x, get(inputs, "kernel"), call.pairs, call.precision, mask_),
            {}};
  if (config_.dropout > 0) at::manual_seed(kSeed);
  call.keep = dropout_mask(config_.dropout, x, call);
  switch (config_.method) {
    case Method::translution:
      return translution::translution(x, get_roles(inputs, ""), call, get_roles(inputs, "bias_"));
    case Method::alpha_translution:
      return translution::alpha_translution(x, alpha_weights(inputs), call, config_.mixing);
    default:
      return translution::self_attention(x, get_roles(inputs, ""), position_terms(inputs), call);
  }
}

at::Tensor Case::expected() const {
  const auto call = oracle_call();
  const auto x = get(inputs_, "x");
  switch (config_.method) {
    case Method::translution:
      return oracle::translution(x, with_bias_rows(inputs_), call);
    case Method::alpha_translution: {
      auto weights = alpha_weights(inputs_);
      weights.shared = with_bias_rows(inputs_);
      return oracle::alpha_translution(x, weights, call, config_.mixing);
    }
    case Method::convolution:
      return oracle::convolution(x, get(inputs_, "kernel"), call);
    default:
      return oracle::self_attention(x, get_roles(inputs_, ""), position_terms(inputs_), call);
  }
}

MethodResult Case::plain(const Inputs& inputs, rounded_oracle::Rounding rounding) const {
  auto call = oracle_call();
  const auto x = get(inputs, "x");
  if (call.keep.defined()) call.keep = call.keep.to(x.scalar_type());
  switch (config_.method) {
    case Method::translution:
      return rounded_oracle::translution(x, get_roles(inputs, ""), call, rounding);
    case Method::alpha_translution:
      return rounded_oracle::alpha_translution(x, alpha_weights(inputs), call, config_.mixing,
                                               rounding);
    case Method::convolution:
      return rounded_oracle::convolution(x, get(inputs, "kernel"), call, rounding);
    default:
      return rounded_oracle::self_attention(x, get_roles(inputs, ""), position_terms(inputs), call,
                                            rounding);
  }
}

std::vector<Config> oracle_configs() {
  std::vector<Config> configs;
  const std::vector<int64_t> grids[] = {{7}, {5, 3}, {2, 3, 2}, {2, 1, 3, 2}};
  for (const auto& grid : grids)
    for (const bool cls : {false, true})
      for (const int causal : {0, 1, 2})
        for (const bool rows : {false, true}) {
          Config config;
          config.grid = grid;
          config.cls = cls;
          config.causal = causal > 0;
          config.mask_only = causal == 2;
          config.H = rows ? 1 : 3;
          config.D = rows ? 5 : 3;
          if (rows) config.rows = {4, 0, 6, 4};
          configs.push_back(config);
        }
  return configs;
}

std::vector<Config> wide_configs() {
  struct Sizes {
    std::vector<int64_t> grid;
    int64_t B, C, H, D, R;
  };
  std::vector<Config> configs;
  for (const Sizes& size : {Sizes{{19}, 5, 33, 1, 31, 17}, Sizes{{5, 6}, 3, 17, 3, 9, 5},
                            Sizes{{2, 3, 3}, 9, 8, 2, 16, 8}, Sizes{{4, 3}, 1, 1, 5, 1, 1},
                            Sizes{{3, 4}, 4, 67, 2, 33, 8}})
    for (const Method method :
         {Method::translution, Method::alpha_translution, Method::self_attention_no_pos,
          Method::relative_key, Method::relative_value, Method::relative_bias,
          Method::gated_position, Method::convolution})
      for (const Sharing sharing : {Sharing::none, Sharing::direction}) {
        Config config;
        config.method = method;
        config.grid = size.grid;
        config.cls = size.B != 5;
        config.causal = size.B == 5;
        config.sharing = sharing;
        config.B = size.B, config.C = size.C, config.H = size.H;
        config.D = size.D, config.R = size.R;
        configs.push_back(config);
      }
  return configs;
}

std::vector<Roles> all_roles() {
  std::vector<Roles> roles;
  for (const char* text : {"q", "k", "v", "qk", "qv", "kv", "qkv"})
    roles.push_back(Roles::parse(text));
  return roles;
}

std::vector<Method> self_attention_methods() {
  return {Method::self_attention_no_pos, Method::relative_key,   Method::relative_value,
          Method::relative_bias,         Method::gated_position, Method::rotary};
}

Config relation_config(Method method) {
  Config config;
  config.method = method;
  config.relation = {0,  1,  -1, 2,  3,  -1,  //
                     1,  0,  2,  2,  -1, 3,   //
                     -1, -1, -1, -1, -1, -1,  //
                     3,  3,  0,  1,  1,  1,   //
                     2,  -1, -1, 0,  0,  2,   //
                     -1, 2,  3,  -1, 1,  0};
  config.mirror = {0, 2, 1, 1};
  return config;
}

double error(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.sizes() == b.sizes(), "error: shapes ", a.sizes(), " and ", b.sizes());
  const auto expected = b.to(at::kDouble);
  const double difference = (a.to(at::kDouble) - expected).abs().max().item<double>();
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference / scale;
}

Inputs gradients(const Case& c, const Inputs& inputs, const at::Tensor& weight) {
  std::vector<std::string> names;
  std::vector<at::Tensor> leaves;
  for (const auto& [name, tensor] : inputs) {
    if (!tensor.requires_grad()) continue;
    names.push_back(name);
    leaves.push_back(tensor);
  }
  const auto loss = (c.run(inputs) * weight).sum();
  const auto grads = torch::autograd::grad({loss}, leaves, {}, c10::nullopt,
                                           /*create_graph=*/false, /*allow_unused=*/true);
  Inputs result;
  for (size_t n = 0; n < names.size(); ++n) result[names[n]] = grads[n];
  return result;
}

}  // namespace translution::testing
