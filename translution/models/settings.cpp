#include "translution/models/settings.h"

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

using namespace fields;
using A = AttentionOptions;
using M = ModelOptions;
using P = Position;

// A member of the architecture as a field of the model.
auto architecture(int64_t Architecture::*member) {
  return [=](auto& model) -> auto& { return model.architecture.*member; };
}

bool is_vit(const ModelOptions& model) { return model.family == Family::vit; }
bool is_gpt(const ModelOptions& model) { return model.family == Family::gpt; }

// The rest of a hybrid is a method too, and messages call it so.
Kind<Method> method() {
  auto kind = one_of(kMethods);
  kind.read = [](const SettingValue& value) { return parse_name("method", kMethods, value.text); };
  return kind;
}

SettingGroup<AttentionOptions> layer_group() {
  using F = Setting<AttentionOptions>;
  return {"Layer",
          {F("dim", &A::dim, whole(), "channels of input and output"),
           F("heads", &A::heads, whole(), "attention heads"),
           F("dim-head", &A::dim_head, whole(), "channels of a head"),
           F("grid", &A::grid, grid(), "sides of the token grid, as in 160, (7, 7), (4, 7, 7)"),
           F("cls", &A::cls, on_off(), "a class token in front"),
           F("causal", &A::causal, on_off(), "no token gathers from later ones")}};
}

SettingGroup<AttentionOptions> layer_extras_group() {
  using F = Setting<AttentionOptions>;
  return {"Extras",
          {F("qkv-bias", &A::qkv_bias, on_off(), "a bias on queries, keys and values"),
           F("dropout", &A::dropout, real(), "dropout probability of the attention"),
           F("init", &A::init, one_of(kInits), "how weights are initialised"),
           F("workspace", &A::workspace, whole(),
             "bytes of encoded queries and keys that may be kept for backward")
               .unset_means("the library's"),
           F("precision", &A::precision, one_of(kPrecisions), "precision of matrix products")}};
}

// What a model's name says. Texts have the name instead.
SettingGroup<ModelOptions> architecture_group() {
  using F = Setting<ModelOptions>;
  return {"Architecture",
          {F("depth", architecture(&Architecture::depth), whole(), "blocks"),
           F("dim", architecture(&Architecture::dim), whole(), "channels of a token"),
           F("heads", architecture(&Architecture::heads), whole(), "attention heads"),
           F("dim-head", architecture(&Architecture::dim_head), whole(), "channels of a head"),
           F("mlp-dim", architecture(&Architecture::mlp_dim), whole(), "hidden channels of an MLP"),
           F("patch-size", &M::patch_size, whole(), "side of a patch in pixels").only_for(is_vit),
           F("length", &M::length, whole(), "the most tokens it takes").only_for(is_gpt)}};
}

// Trainings have it as a setting of their own.
SettingGroup<ModelOptions> precision_group() {
  using F = Setting<ModelOptions>;
  return {"Precision",
          {F("precision", &M::precision, one_of(kPrecisions), "precision of matrix products")}};
}

SettingGroup<ModelOptions> input_group() {
  using F = Setting<ModelOptions>;
  return {"Model",
          {F("input-embedding", &M::input_embedding, unset_or("as the method has it", on_off()),
             "a vector per place added to the input"),
           F("dropout", &M::dropout, real(), "dropout probability of features and attention")
               .left_out_by_default(),
           F("init", &M::init, one_of(kInits, kInitsForUsers), "how weights are initialised")}};
}

// Left out of texts for what the paper has, so that only a model that differs says so.
SettingGroup<ModelOptions> layout_group() {
  using F = Setting<ModelOptions>;
  return {"Layout",
          {F("extra-norms", &M::extra_norms, on_off(),
             "norms around the patch embedding, or a second one before a gpt's head")
               .left_out_by_default(),
           F("qkv-bias", &M::qkv_bias, on_off(), "a bias on queries, keys and values")
               .left_out_by_default(),
           F("gelu", &M::gelu, one_of(kGelus), "GELU of the MLPs").left_out_by_default(),
           F("norm-eps", &M::norm_eps, real(), "added to the variance in a norm")
               .left_out_by_default()}};
}

SettingGroup<Position> position_group() {
  using F = Setting<Position>;
  return {
      "Position",
      {F("method", &P::method, method(), "where position enters; see `translution list`"),
       F("roles", &P::roles, roles(), "which of q, k, v have a matrix per offset, or none"),
       F("encoding", &P::encoding, one_of(kEncodings), "a matrix per offset or per token pair"),
       F("sharing", &P::sharing, one_of(kSharings), "how offsets beyond the radius are joined"),
       F("radius", &P::radius, whole(), "sharing radius"),
       F("rotary", &P::rotary, on_off(), "rotate queries and keys that are not relative"),
       F("angles", &P::angles, one_of(kAngles), "precision of rotary angles").left_out_by_default(),
       F("kernel-size", &P::kernel_size, whole(), "side of a convolution's window")}};
}

SettingGroup<Position> alpha_group() {
  using F = Setting<Position>;
  return {"Alpha-Translution",
          {F("relative-dim", &P::relative_dim, whole(), "relative channels per head"),
           F("relative-dim-out", &P::relative_dim_out, whole(),
             "relative channels per head behind the matrices; 0: the same")
               .left_out_by_default(),
           F("shared-qkv", &P::shared_qkv, on_off(), "W^q, W^k, W^v for all offsets beside them"),
           F("mixing", &P::mixing, one_of(kMixings), "how the two parts are joined")}};
}

SettingGroup<ModelOptions> hybrid_group() {
  using F = Setting<ModelOptions>;
  return {"Hybrids",
          {F("hybrid-layers", &M::hybrid_layers, unset_or("all", whole()),
             "number of layers, from the first, that use the method"),
           F("rest", &M::rest, method(), "method of the other layers")}};
}

SettingGroup<ModelOptions> image_group() {
  using F = Setting<ModelOptions>;
  return {
      "Images (vit)",
      {F("image-size", &M::image_size, sides(), "image size in pixels, as in 84 or 84x60")
           .only_for(is_vit),
       F("channels", &M::channels, whole(), "input channels").only_for(is_vit),
       F("classes", &M::classes, whole(), "number of classes").only_for(is_vit),
       F("pooling", &M::pooling, one_of(kPoolings), "read a class token, or average the patches")
           .only_for(is_vit)}};
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
       {hybrid_group(), layout_group(), image_group(), text_group()}});
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
          "model is missing; expected a name such as vit-a/12 or gpt-a-160");
  auto model = ModelOptions::named(name->second);
  for (const auto& group : model_settings())
    for (const auto& setting : group.settings)
      require(texts.count(setting.name) == 0 || setting.is_for(model), prefix, setting.name,
              " is not for ", model.name(), "; it belongs to ", group.title);
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
