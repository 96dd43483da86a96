#include "translution/models/settings.h"

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

using namespace fields;
using A = AttentionOptions;
using M = ModelOptions;
using P = Position;

// Accesses a member of the model's architecture.
auto architecture(int64_t Architecture::*member) {
  return [=](auto& model) -> auto& { return model.architecture.*member; };
}

bool is_vit(const ModelOptions& model) { return model.family == Family::vit; }
bool is_gpt(const ModelOptions& model) { return model.family == Family::gpt; }
bool is_cloud(const ModelOptions& model) { return model.family == Family::cloud; }
bool has_classes(const ModelOptions& model) { return !is_gpt(model); }
bool has_norms_outside(const ModelOptions& model) { return !is_cloud(model); }

// Messages say "unknown method" for `rest` as well.
Kind<Method> method() {
  auto kind = one_of(kMethods);
  kind.read = [](const SettingValue& value) { return parse_name("method", kMethods, value.text); };
  return kind;
}

SettingGroup<AttentionOptions> layer_group() {
  using F = Setting<AttentionOptions>;
  return {"Layer",
          {F("dim", &A::dim, whole(), "input and output channels"),
           F("heads", &A::heads, whole(), "number of attention heads"),
           F("dim-head", &A::dim_head, &A::dim_head, whole(), "channels per head")
               .unset_means("dim / heads"),
           F("grid", &A::grid, grid(), "sides of the token grid, as in 160, (7, 7), (4, 7, 7)"),
           F("cls", &A::cls, on_off(), "class token before the other tokens"),
           F("causal", &A::causal, on_off(),
             "causal mask: tokens attend only to themselves and earlier tokens")}};
}

SettingGroup<AttentionOptions> layer_extras_group() {
  using F = Setting<AttentionOptions>;
  return {"Extras",
          {F("qkv-bias", &A::qkv_bias, on_off(), "bias on queries, keys and values"),
           F("dropout", &A::dropout, real(), "dropout probability of attention"),
           F("init", &A::init, one_of(kInits), "weight initialisation"),
           F("workspace", &A::workspace, whole(),
             "maximum bytes of encoded queries and keys saved for backward")
               .unset_means("the runtime's workspace"),
           F("precision", &A::precision, one_of(kPrecisions), "precision of matrix products")}};
}

// The sizes that a model's name gives; files store the name instead.
SettingGroup<ModelOptions> architecture_group() {
  using F = Setting<ModelOptions>;
  return {
      "Architecture",
      {F("depth", architecture(&Architecture::depth), whole(), "number of blocks"),
       F("dim", architecture(&Architecture::dim), whole(), "channels per token"),
       F("heads", architecture(&Architecture::heads), whole(), "number of attention heads"),
       F("dim-head", architecture(&Architecture::dim_head), whole(), "channels per head"),
       F("mlp-dim", architecture(&Architecture::mlp_dim), whole(), "hidden channels of the MLPs"),
       F("patch-size", &M::patch_size, whole(), "patch side in pixels").only_for(is_vit),
       F("length", &M::length, whole(), "maximum number of tokens").only_for(is_gpt)}};
}

// Not in model_settings(): training has its own setting for it.
SettingGroup<ModelOptions> precision_group() {
  using F = Setting<ModelOptions>;
  return {"Precision",
          {F("precision", &M::precision, one_of(kPrecisions), "precision of matrix products")}};
}

SettingGroup<ModelOptions> input_group() {
  using F = Setting<ModelOptions>;
  return {"Model",
          {F("input-embedding", &M::input_embedding, unset_or("set by the method", on_off()),
             "learned position embedding added to the input"),
           F("dropout", &M::dropout, real(), "dropout probability of features and attention")
               .left_out_by_default(),
           F("init", &M::init, one_of(kInits, kInitsForUsers), "weight initialisation")}};
}

// The defaults are the paper's and are left out of texts, so that only other models list them.
SettingGroup<ModelOptions> layout_group() {
  using F = Setting<ModelOptions>;
  return {"Layout",
          {F("extra-norms", &M::extra_norms, on_off(),
             "norms around the patch embedding (vit), second norm before the head (gpt)")
               .left_out_by_default()
               .only_for(has_norms_outside),
           F("qkv-bias", &M::qkv_bias, on_off(), "bias on queries, keys and values")
               .left_out_by_default(),
           F("gelu", &M::gelu, one_of(kGelus), "form of GELU in the MLPs").left_out_by_default(),
           F("norm-eps", &M::norm_eps, real(), "epsilon added to the variance in norms")
               .left_out_by_default()}};
}

SettingGroup<Position> position_group() {
  using F = Setting<Position>;
  return {
      "Position",
      {F("method", &P::method, method(), "attention method; see `translution list`"),
       F("roles", &P::roles, roles(), "roles with a matrix per offset: some of q, k, v, or none"),
       F("encoding", &P::encoding, one_of(kEncodings), "one matrix per offset or per token pair"),
       F("sharing", &P::sharing, one_of(kSharings), "weight sharing of offsets beyond the radius"),
       F("radius", &P::radius, whole(), "sharing radius, or lattice points to each side (cloud)"),
       F("rotary", &P::rotary, on_off(),
         "rotary position for queries and keys that are not relative"),
       F("angles", &P::angles, one_of(kAngles), "precision of rotary angles").left_out_by_default(),
       F("kernel-size", &P::kernel_size, whole(), "side of the convolution window")}};
}

SettingGroup<Position> alpha_group() {
  using F = Setting<Position>;
  return {
      "Alpha-Translution",
      {F("relative-dim", &P::relative_dim, whole(), "relative channels per head"),
       F("relative-dim-out", &P::relative_dim_out, whole(),
         "relative channels per head after the matrices; 0: the same as before")
           .left_out_by_default(),
       F("shared-qkv", &P::shared_qkv, on_off(), "additional W^q, W^k, W^v shared by all offsets"),
       F("mixing", &P::mixing, one_of(kMixings),
         "combination of the shared and the relative part")}};
}

SettingGroup<ModelOptions> hybrid_group() {
  using F = Setting<ModelOptions>;
  return {"Hybrids",
          {F("hybrid-layers", &M::hybrid_layers, unset_or("all", whole()),
             "number of leading layers that use the method"),
           F("rest", &M::rest, method(), "method of the other layers")}};
}

SettingGroup<ModelOptions> image_group() {
  using F = Setting<ModelOptions>;
  return {"Images (vit)",
          {F("image-size", &M::image_size, sides(), "image size in pixels, as in 84 or 84x60")
               .only_for(is_vit)}};
}

SettingGroup<ModelOptions> classes_group() {
  using F = Setting<ModelOptions>;
  return {"Classes (vit, cloud)",
          {F("channels", &M::channels, whole(), "input channels, or features of a point")
               .only_for(has_classes),
           F("classes", &M::classes, whole(), "number of classes; 0: a number (cloud)")
               .only_for(has_classes),
           F("pooling", &M::pooling, one_of(kPoolings),
             "input of the head: class token, or mean of the patches or points")
               .only_for(has_classes)}};
}

SettingGroup<ModelOptions> points_group() {
  using F = Setting<ModelOptions>;
  return {
      "Points (cloud)",
      {F("axes", &M::axes, whole(), "numbers of a position").only_for(is_cloud),
       F("spacing", &M::spacing, unset_or("from the data", real()),
         "distance of lattice points, in the unit of the positions")
           .only_for(is_cloud),
       F("neighbours", &M::neighbours, whole(), "nearest points that a point attends to; 0: all")
           .only_for(is_cloud),
       F("cutoff", &M::cutoff, real(), "farthest point that a point attends to; 0: any")
           .only_for(is_cloud),
       F("distances", &M::distances, on_off(), "offsets are the distances of pairs")
           .only_for(is_cloud),
       F("learn-spacing", &M::learn_spacing, on_off(), "the spacing is a parameter")
           .only_for(is_cloud),
       F("coordinates", &M::coordinates, one_of(kCoordinates),
         "coordinates that an input embedding reads")
           .only_for(is_cloud),
       F("points", &M::points, whole(), "points of a cloud, for costs and memory only")
           .only_for(is_cloud),
       F("target-mean", &M::target_mean, real(), "mean of the numbers to predict")
           .only_for(is_cloud)
           .left_out_by_default(),
       F("target-scale", &M::target_scale, real(), "their standard deviation")
           .only_for(is_cloud)
           .left_out_by_default()}};
}

SettingGroup<ModelOptions> text_group() {
  using F = Setting<ModelOptions>;
  return {"Text (gpt)",
          {F("vocabulary", &M::vocabulary, whole(), "number of distinct tokens").only_for(is_gpt)}};
}

}  // namespace

const Settings<Position>& position_settings() {
  static const Settings<Position> groups = {position_group(), alpha_group()};
  return groups;
}

const Settings<AttentionOptions>& attention_settings() {
  static const auto groups = joined_settings<AttentionOptions>(
      {{layer_group()},
       settings_of_part<AttentionOptions>(
           position_settings(), [](auto& layer) -> auto& { return layer.position(); }),
       {layer_extras_group()}});
  return groups;
}

const Settings<ModelOptions>& model_settings() {
  static const auto groups = joined_settings<ModelOptions>(
      {{input_group()},
       settings_of_part<ModelOptions>(position_settings(), &ModelOptions::position),
       {hybrid_group(), layout_group(), image_group(), classes_group(), points_group(),
        text_group()}});
  return groups;
}

const Settings<ModelOptions>& all_model_settings() {
  static const auto groups = joined_settings<ModelOptions>(
      {{architecture_group()}, model_settings(), {precision_group()}});
  return groups;
}

SettingTexts model_texts(const ModelOptions& options) {
  SettingTexts texts = {{"model", options.name()}};
  for (auto& entry : texts_of(model_settings(), options)) texts.push_back(entry);
  return texts;
}

ModelOptions parse_model(const std::map<std::string, std::string>& texts,
                         const std::string& prefix) {
  const auto name = texts.find("model");
  require(name != texts.end(), prefix,
          "model is missing; expected a name such as vit-a/12, gpt-a-160 or cloud-a");
  auto model = ModelOptions::named(name->second);
  for (const auto& group : model_settings())
    for (const auto& setting : group.settings)
      require(texts.count(setting.name) == 0 || setting.is_for(model), prefix, setting.name,
              " does not apply to ", model.name(), "; it belongs to ", group.title);
  set_all(model_settings(), texts, model, prefix);
  return model;
}

ModelOptions read_model(const std::map<std::string, std::string>& texts,
                        const std::string& prefix) {
  const auto model = parse_model(texts, prefix);
  model.check();
  return model;
}

}  // namespace translution
