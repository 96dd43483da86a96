#include "translution/models/warm_start.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "translution/core/error.h"
#include "translution/core/pairs.h"
#include "translution/core/settings.h"
#include "translution/models/check_weights.h"
#include "translution/models/cost.h"

namespace translution {

using namespace detail;

namespace {

using Shape = std::vector<int64_t>;

constexpr const char* kPositions = "position_embedding";
constexpr const char* kBias = "_bias";

// The layer whose attention has the parameter; -1 if it belongs to another part of the model.
int64_t attention_layer(const std::string& name) {
  long long layer = -1;
  int end = 0;
  std::sscanf(name.c_str(), "backbone.blocks.%lld.attention.%n", &layer, &end);
  return end > 0 && name.compare(end, 4, "out.") != 0 ? layer : -1;
}

// The last row of a matrix per offset is its bias if the model has qkv_bias.
bool has_bias_row(const ParameterSpec& spec) {
  return spec.per_slot && spec.shape.size() == 3 && spec.shape[1] == spec.fan_in + 1;
}

// Without the number of slots and without a bias row.
Shape shape_per_slot(const ParameterSpec& spec) {
  Shape shape(spec.shape.begin() + (spec.per_slot ? 1 : 0), spec.shape.end());
  if (has_bias_row(spec)) --shape.front();
  return shape;
}

OffsetOptions offsets_of(const AttentionOptions& layer) {
  return layer.position().offsets(layer.grid(), layer.cls(), layer.causal());
}

// Whether the tables differ at most in the sides of their grids.
bool same_kind(const OffsetOptions& a, const OffsetOptions& b) {
  return a.cls == b.cls && a.causal == b.causal && a.encoding == b.encoding &&
         a.sharing == b.sharing && a.radius == b.radius;
}

// Biases and vectors per offset, which are added to something.
bool is_added(const ParameterSpec& spec) {
  return spec.fan_in == 0 && (spec.per_slot || spec.name.find(kBias) != std::string::npos);
}

// A relative part of alpha-Translution. With the table `gate` at zero it adds nothing, and only
// this table has a gradient in the first step.
struct RelativePart {
  std::string gate;
  std::vector<std::string> names;
};

// Without shared matrices the relative parts are all there is, so none may be zero.
std::vector<RelativePart> relative_parts(const Position& p) {
  if (p.method != Method::alpha_translution || !p.shared_qkv) return {};
  return {{p.roles.q ? "query_offsets" : "key_offsets",
           {"query_down", "query_offsets", "key_down", "key_offsets"}},
          {"value_offsets", {"value_down", "value_offsets", "value_up"}}};
}

class Planner {
 public:
  Planner(const ModelOptions& saved, const ModelOptions& model, bool take_head)
      : saved_(saved), model_(model), take_head_(take_head), specs_(model_parameters(model)) {
    for (const auto& spec : model_parameters(saved)) old_.emplace(spec.name, spec);
  }

  WarmStart plan() {
    for (const auto& spec : specs_) starts_[spec.name] = start_of(spec);
    for (int64_t layer = 0; layer < model_.architecture.depth; ++layer) start_relative_parts(layer);
    WarmStart result;
    for (const auto& spec : specs_)
      result.tensors.push_back({spec.name, spec.count(), starts_.at(spec.name)});
    for (const auto& [name, spec] : old_)
      if (!is_used(name)) result.tensors.push_back({name, spec.count(), Start::unused});
    result.changes = changes();
    result.same_outputs = !lost_part_ && result.changes.empty() &&
                          std::all_of(result.tensors.begin(), result.tensors.end(),
                                      [&](const auto& tensor) { return is_harmless(tensor); });
    return result;
  }

 private:
  const ParameterSpec* old(const std::string& name) const {
    const auto found = old_.find(name);
    return found == old_.end() ? nullptr : &found->second;
  }

  bool is_taken(const std::string& name) const {
    const auto found = starts_.find(name);
    return found != starts_.end() && found->second != Start::zero && found->second != Start::anew;
  }

  // Whether a tensor of the old model is taken, as it is or as the bias row of a matrix per offset.
  bool is_used(const std::string& name) const {
    const auto ending = name.rfind(kBias);
    return is_taken(name) ||
           (ending != std::string::npos && model_.qkv_bias && is_taken(name.substr(0, ending)));
  }

  Start start_of(const ParameterSpec& spec) const {
    const auto* before = old(spec.name);
    const int64_t layer = attention_layer(spec.name);
    if (layer >= 0) return start_in_layer(before, spec, layer);
    if (spec.name == kPositions) return start_of_positions(before);
    if (!take_head_ && spec.name.rfind("head.", 0) == 0) return Start::anew;
    return before && before->shape == spec.shape ? Start::taken : Start::anew;
  }

  Start start_of_positions(const ParameterSpec* before) const {
    if (!before) return Start::zero;
    if (saved_.has_cls() != model_.has_cls()) return Start::anew;
    return saved_.grid() == model_.grid() ? Start::taken : Start::moved;
  }

  Start start_in_layer(const ParameterSpec* before, const ParameterSpec& spec,
                       int64_t layer) const {
    if (!before) return is_added(spec) ? Start::zero : Start::anew;
    if (!spec.per_slot) return before->shape == spec.shape ? Start::taken : Start::anew;
    if (shape_per_slot(*before) != shape_per_slot(spec)) return Start::anew;
    if (!before->per_slot) return Start::repeated;
    const auto from = offsets_of(saved_.table_options(layer)),
               to = offsets_of(model_.table_options(layer));
    if (!same_kind(from, to)) return Start::anew;
    if (from.grid == to.grid) return Start::taken;
    return to.encoding == Encoding::relative ? Start::moved : Start::anew;
  }

  void start_relative_parts(int64_t layer) {
    const std::string prefix = join("backbone.blocks.", layer, ".attention.");
    for (const auto& part : relative_parts(model_.attention(layer).position())) {
      bool whole = true, existed = false;
      for (const auto& name : part.names) {
        const auto found = starts_.find(prefix + name);
        whole = whole && (found == starts_.end() || is_taken(prefix + name));
        existed = existed || old(prefix + name);
      }
      if (whole) continue;
      for (const auto& name : part.names) silent_.insert(prefix + name);
      starts_.at(prefix + part.gate) = Start::zero;
      lost_part_ = lost_part_ || existed;
    }
  }

  bool is_harmless(const WarmStart::Tensor& tensor) const {
    if (tensor.start == Start::anew) return silent_.count(tensor.name) == 1;
    return tensor.start != Start::unused && tensor.start != Start::moved;
  }

  std::vector<std::string> changes() const {
    std::vector<std::string> found;
    const auto compare = [&](const std::string& name, const auto& before, const auto& now) {
      if (before != now) found.push_back(join(name, " ", now, " instead of ", before));
    };
    const auto pooling = [](const ModelOptions& m) { return name_of(kPoolings, m.pooling); };
    compare("grid", times(saved_.grid()), times(model_.grid()));
    compare("gelu", std::string(name_of(kGelus, saved_.gelu)), name_of(kGelus, model_.gelu));
    compare("norm-eps", saved_.norm_eps, model_.norm_eps);
    if (model_.family != Family::gpt)
      compare("pooling", std::string(pooling(saved_)), pooling(model_));
    if (model_.family == Family::cloud) compare_lattices(compare);
    if (saved_.qkv_bias && !model_.qkv_bias) found.emplace_back("qkv-bias off instead of on");
    compare("rotary", rotations(saved_), rotations(model_));
    compare("mixing", mixings(saved_), mixings(model_));
    return found;
  }

  template <typename Compare>
  void compare_lattices(const Compare& compare) const {
    const auto sharing = [](const ModelOptions& m) {
      return name_of(kSharings, m.position.sharing);
    };
    compare("radius", saved_.position.radius, model_.position.radius);
    compare("sharing", std::string(sharing(saved_)), sharing(model_));
    compare("spacing", saved_.spacing.value_or(0), model_.spacing.value_or(0));
    compare("neighbours", saved_.neighbours, model_.neighbours);
    compare("cutoff", saved_.cutoff, model_.cutoff);
    compare("coordinates", std::string(name_of(kCoordinates, saved_.coordinates)),
            name_of(kCoordinates, model_.coordinates));
  }

  // In how many layers positions rotate queries and keys, and how.
  static std::string rotations(const ModelOptions& model) {
    int64_t layers = 0;
    for (int64_t layer = 0; layer < model.architecture.depth; ++layer)
      layers += model.attention(layer).position().rotates();
    return layers == 0 ? "off"
                       : join("in ", layers, " layers (angles ",
                              name_of(kAngles, model.position.angles), ")");
  }

  static std::string mixings(const ModelOptions& model) {
    const auto& p = model.position;
    const bool mixes = p.method == Method::alpha_translution && p.uses_offsets() && p.shared_qkv;
    return name_of(kMixings, mixes ? p.mixing : Mixing::sum);
  }

  const ModelOptions &saved_, &model_;
  const bool take_head_;
  const std::vector<ParameterSpec> specs_;    // of the network
  std::map<std::string, ParameterSpec> old_;  // of the old model
  std::map<std::string, Start> starts_;       // of the network's parameters
  std::set<std::string> silent_;  // parameters of relative parts that add nothing at first
  bool lost_part_ = false;        // a relative part of the old model is not taken
};

at::Tensor find(const NamedTensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? at::Tensor() : found->second;
}

std::string channels_text(int64_t channels) {
  return join(channels, channels == 1 ? " channel" : " channels");
}

void require_same_sizes(const ModelOptions& saved, const ModelOptions& model,
                        const std::string& source) {
  const auto& a = saved.architecture;
  const auto& b = model.architecture;
  const bool same = saved.family == model.family && a.depth == b.depth && a.dim == b.dim &&
                    a.heads == b.heads && a.mlp_dim == b.mlp_dim && a.dim_head == b.dim_head &&
                    (model.family == Family::gpt || saved.patch_size == model.patch_size);
  require(same, source, ": expected weights of ", model.name(), ", got those of ", saved.name(),
          "; use the same architecture and patch size");
  if (model.family == Family::gpt)
    return require(saved.vocabulary == model.vocabulary, source, ": expected a vocabulary of ",
                   model.vocabulary, ", got ", saved.vocabulary,
                   "; use text of the same tokenizer, or other weights");
  const bool points = model.family == Family::cloud;
  require(saved.channels == model.channels, source, ": expected weights for ",
          points ? "points" : "images", " with ", channels_text(model.channels), ", got ",
          channels_text(saved.channels), "; use other data, or other weights");
  require(!points || (saved.axes == model.axes && saved.distances == model.distances), source,
          ": expected weights for positions with ", model.axes, " axes, distances ",
          name_of(kSwitch, model.distances), ", got ", saved.axes, " axes, distances ",
          name_of(kSwitch, saved.distances), "; use other data, or other weights");
}

// Matrices with `rows` rows: [C,E] or [M,C,E] with the bias appended, or zero if there is none;
// without its bias row if `rows` is C.
at::Tensor with_bias_row(const at::Tensor& matrices, const at::Tensor& bias, int64_t rows) {
  if (matrices.size(-2) >= rows) return matrices.narrow(-2, 0, rows);
  auto shape = matrices.sizes().vec();
  shape[shape.size() - 2] = 1;
  const auto row = bias.defined() ? bias.expand(shape) : matrices.new_zeros(shape);
  return at::cat({matrices, row}, -2);
}

// The rows of a tensor of the old model on the grid of the new one.
at::Tensor move_rows(const std::string& name, const at::Tensor& tensor, const ModelOptions& saved,
                     const ModelOptions& model) {
  const auto tokens = [](const ModelOptions& m) {
    return OffsetOptions{m.grid(), m.has_cls(), m.is_causal()};
  };
  if (name == kPositions) return regrid_places(tensor, tokens(saved), tokens(model), Fill::nearest);
  const int64_t layer = attention_layer(name);
  const auto offsets = [&](const ModelOptions& m) {
    return find_offsets(pairs_text(offsets_of(m.table_options(layer))));
  };
  return regrid_offsets(tensor, *offsets(saved), *offsets(model), Fill::nearest);
}

}  // namespace

WarmStart plan_warm_start(const ModelOptions& saved, const ModelOptions& model,
                          const std::string& source, bool take_head) {
  require_same_sizes(saved, model, source);
  return Planner(saved, model, take_head).plan();
}

WarmStart start_from(Network& network, const ModelOptions& saved, const NamedTensors& tensors,
                     const std::string& source, bool take_head) {
  auto model = network.options();
  model.share = {};
  require(model.init != Init::none,
          "start_from: expected an initialised network, got one with init none");
  auto plan = plan_warm_start(saved, model, source, take_head);
  require_shapes(saved, tensors, source);
  auto parameters = network.module().named_parameters();
  const auto tables = network.table_rows();
  const torch::NoGradGuard no_grad;
  for (const auto& [name, count, start] : plan.tensors) {
    if (start == Start::unused || start == Start::anew) continue;
    auto& parameter = parameters[name];
    if (start == Start::zero) {
      parameter.zero_();
      continue;
    }
    auto tensor = tensors.at(name);
    if (start == Start::moved) tensor = move_rows(name, tensor, saved, model);
    if (parameter.dim() == 3)
      tensor = with_bias_row(tensor, find(tensors, name + kBias), parameter.size(1));
    if (const auto table = tables.find(name); table != tables.end() && tensor.dim() == 3)
      tensor = tensor.index_select(0, torch::tensor(table->second.rows));
    parameter.copy_(tensor);  // repeated: the matrix is broadcast
  }
  return plan;
}

}  // namespace translution
