#include "translution/models/settings.h"

#include "translution/core/error.h"

namespace translution {
namespace {

using Group = SettingGroup<ModelOptions>;

// Groups that only one family has.
constexpr const char* kImages = "Images (vit)";
constexpr const char* kText = "Text (gpt)";

const ModelOptions& defaults() {
  static const ModelOptions options;
  return options;
}

std::string text(int64_t number) { return std::to_string(number); }

Group input_settings() {
  return {"Model",
          {{"input-embedding", choices(kSwitch),
            "a vector per place added to the input (as the method has it)",
            [](ModelOptions& o, const Value& v) { o.input_embedding = v.on(); },
            [](const ModelOptions& o) {
              return o.input_embedding ? switch_text(*o.input_embedding) : "";
            }},
           {"dropout", "P", "dropout probability of features and attention (0)",
            [](ModelOptions& o, const Value& v) { o.dropout = v.real(0, 0.99); },
            [](const ModelOptions& o) { return o.dropout == 0 ? "" : number_text(o.dropout); }},
           {"init", choices(kInits), "how weights are initialised (scaled)",
            [](ModelOptions& o, const Value& v) { o.init = v.one_of(kInits); },
            [](const ModelOptions& o) { return name_of(kInits, o.init); }}}};
}

// Empty for what the paper has, so that only a model that differs says so.
Group layout_group() {
  return {"Layout",
          {{"extra-norms", choices(kSwitch),
            "norms around the patch embedding, or a second one before a gpt's head (on)",
            [](ModelOptions& o, const Value& v) { o.extra_norms = v.on(); },
            [](const ModelOptions& o) { return o.extra_norms ? "" : switch_text(false); }},
           {"qkv-bias", choices(kSwitch), "a bias on queries, keys and values (off)",
            [](ModelOptions& o, const Value& v) { o.qkv_bias = v.on(); },
            [](const ModelOptions& o) { return o.qkv_bias ? switch_text(true) : ""; }},
           {"gelu", choices(kGelus), "GELU of the MLPs (exact)",
            [](ModelOptions& o, const Value& v) { o.gelu = v.one_of(kGelus); },
            [](const ModelOptions& o) {
              return o.gelu == defaults().gelu ? "" : name_of(kGelus, o.gelu);
            }},
           {"norm-eps", "X", join("added to the variance in a norm (", defaults().norm_eps, ")"),
            [](ModelOptions& o, const Value& v) { o.norm_eps = v.real(0, 0.1); },
            [](const ModelOptions& o) {
              return o.norm_eps == defaults().norm_eps ? "" : number_text(o.norm_eps);
            }}}};
}

Group position_group() {
  const Position& d = defaults().position;
  return {"Position",
          {{"method", "NAME", "where position enters; see `translution list` (translution)",
            [](ModelOptions& o, const Value& v) { o.position.method = v.one_of(kMethods); },
            [](const ModelOptions& o) { return name_of(kMethods, o.position.method); }},
           {"roles", "qkv", "which of q, k, v have a matrix per offset, or none (qkv)",
            [](ModelOptions& o, const Value& v) { o.position.roles = Roles::parse(v.text); },
            [](const ModelOptions& o) { return o.position.roles.str(); }},
           {"encoding", choices(kEncodings), "a matrix per offset or per token pair (relative)",
            [](ModelOptions& o, const Value& v) { o.position.encoding = v.one_of(kEncodings); },
            [](const ModelOptions& o) { return name_of(kEncodings, o.position.encoding); }},
           {"sharing", choices(kSharings), "how offsets beyond the radius are joined (none)",
            [](ModelOptions& o, const Value& v) { o.position.sharing = v.one_of(kSharings); },
            [](const ModelOptions& o) { return name_of(kSharings, o.position.sharing); }},
           {"radius", "N", join("sharing radius (", d.radius, ")"),
            [](ModelOptions& o, const Value& v) { o.position.radius = v.number(); },
            [](const ModelOptions& o) { return text(o.position.radius); }},
           {"rotary", choices(kSwitch), "rotate queries and keys that are not relative (off)",
            [](ModelOptions& o, const Value& v) { o.position.rotary = v.on(); },
            [](const ModelOptions& o) { return switch_text(o.position.rotary); }},
           {"angles", choices(kAngles), "precision of rotary angles (double)",
            [](ModelOptions& o, const Value& v) { o.position.angles = v.one_of(kAngles); },
            [](const ModelOptions& o) {
              return o.position.angles == defaults().position.angles
                         ? ""
                         : name_of(kAngles, o.position.angles);
            }},
           {"kernel-size", "N", join("side of a convolution's window (", d.kernel_size, ")"),
            [](ModelOptions& o, const Value& v) { o.position.kernel_size = v.number(); },
            [](const ModelOptions& o) { return text(o.position.kernel_size); }}}};
}

Group alpha_group() {
  return {"Alpha-Translution",
          {{"relative-dim", "N",
            join("relative channels per head (", defaults().position.relative_dim, ")"),
            [](ModelOptions& o, const Value& v) { o.position.relative_dim = v.number(); },
            [](const ModelOptions& o) { return text(o.position.relative_dim); }},
           {"shared-qkv", choices(kSwitch), "W^q, W^k, W^v for all offsets beside them (on)",
            [](ModelOptions& o, const Value& v) { o.position.shared_qkv = v.on(); },
            [](const ModelOptions& o) { return switch_text(o.position.shared_qkv); }},
           {"mixing", choices(kMixings), "how the two parts are joined (sum)",
            [](ModelOptions& o, const Value& v) { o.position.mixing = v.one_of(kMixings); },
            [](const ModelOptions& o) { return name_of(kMixings, o.position.mixing); }}}};
}

Group hybrid_group() {
  return {
      "Hybrids",
      {{"hybrid-layers", "K", "only the first K layers use the method (all)",
        [](ModelOptions& o, const Value& v) { o.hybrid_layers = v.number(); },
        [](const ModelOptions& o) { return o.hybrid_layers ? text(*o.hybrid_layers) : ""; }},
       {"rest", "NAME",
        join("method of the other layers (", name_of(kMethods, defaults().rest), ")"),
        [](ModelOptions& o, const Value& v) { o.rest = parse_name("method", kMethods, v.text); },
        [](const ModelOptions& o) { return name_of(kMethods, o.rest); }}}};
}

Group image_group() {
  const auto& d = defaults();
  return {kImages,
          {{"image-size", "N|HxW",
            join("image size in pixels, as in 84 or 84x60 (", times(d.image_size), ")"),
            [](ModelOptions& o, const Value& v) { o.image_size = v.sides(); },
            [](const ModelOptions& o) { return times(o.image_size); }},
           {"channels", "N", join("input channels (", d.channels, ")"),
            [](ModelOptions& o, const Value& v) { o.channels = v.number(); },
            [](const ModelOptions& o) { return text(o.channels); }},
           {"classes", "N", join("number of classes (", d.classes, ")"),
            [](ModelOptions& o, const Value& v) { o.classes = v.number(); },
            [](const ModelOptions& o) { return text(o.classes); }},
           {"pooling", choices(kPoolings), "read a class token, or average the patches (cls)",
            [](ModelOptions& o, const Value& v) { o.pooling = v.one_of(kPoolings); },
            [](const ModelOptions& o) { return name_of(kPoolings, o.pooling); }}}};
}

Group text_group() {
  return {kText,
          {{"vocabulary", "N", join("number of distinct tokens (", defaults().vocabulary, ")"),
            [](ModelOptions& o, const Value& v) { o.vocabulary = v.number(); },
            [](const ModelOptions& o) { return text(o.vocabulary); }}}};
}

bool belongs(const Group& group, const ModelOptions& model) {
  return group.title != (model.family == Family::vit ? kText : kImages);
}

}  // namespace

const ModelSettings& position_settings() {
  static const ModelSettings groups = {position_group(), alpha_group()};
  return groups;
}

const ModelSettings& model_settings() {
  static const ModelSettings groups = {input_settings(), position_group(), alpha_group(),
                                       hybrid_group(),   layout_group(),   image_group(),
                                       text_group()};
  return groups;
}

SettingTexts model_texts(const ModelOptions& options) {
  SettingTexts texts = {{"model", options.name()}};
  for (const auto& group : model_settings())
    if (belongs(group, options))
      for (auto& entry : texts_of<ModelOptions>({group}, options)) texts.push_back(entry);
  return texts;
}

ModelOptions parse_model(const std::map<std::string, std::string>& texts,
                         const std::string& prefix) {
  const auto name = texts.find("model");
  require(name != texts.end(), prefix,
          "model is missing; wanted a name such as vit-a/12 or gpt-a-160");
  auto model = ModelOptions::named(name->second);
  for (const auto& group : model_settings())
    for (const auto& setting : group.settings) {
      const auto found = texts.find(setting.name);
      if (found == texts.end()) continue;
      require(belongs(group, model), prefix, setting.name, " is not for ", model.name(),
              "; it belongs to ", group.title);
      setting.set(model, {prefix + setting.name, found->second});
    }
  return model;
}

ModelOptions read_model(const std::map<std::string, std::string>& texts,
                        const std::string& prefix) {
  const auto model = parse_model(texts, prefix);
  model.check();
  return model;
}

}  // namespace translution
