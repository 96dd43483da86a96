#include <algorithm>
#include <functional>

#include "translution/core/error.h"
#include "translution/core/names.h"
#include "translution/core/settings.h"
#include "translution/models/authors.h"
#include "translution/weights/authors.h"

namespace translution {

using namespace detail;

namespace {

using Kind = AuthorsModule::Kind;

// "(6, 4)", "[6, 4]", "6x4" or "6".
std::vector<int64_t> sides_of(const SettingValue& value) {
  std::string text;
  for (const char letter : value.text) {
    if (letter == ',')
      text += 'x';
    else if (std::string("()[] ").find(letter) == std::string::npos)
      text += letter;
  }
  return SettingValue{value.name, text}.grid();
}

bool to_bool(const SettingValue& value) {
  const bool yes = value.text == "True" || value.text == "on";
  require(yes || value.text == "False" || value.text == "off", value.name,
          ": expected True or False, got '", value.text, "'");
  return yes;
}

struct Argument {
  const char* name;
  std::function<void(AuthorsModule&, const SettingValue&)> set;
};
using Arguments = std::vector<Argument>;

Arguments layer_arguments() {
  return {
      {"dim", [](auto& m, const auto& v) { m.layer.dim(v.number()); }},
      {"heads", [](auto& m, const auto& v) { m.layer.heads(v.number()); }},
      {"dim_head", [](auto& m, const auto& v) { m.layer.dim_head(v.number()); }},
      {"relative_dim",
       [](auto& m, const auto& v) { m.layer.position().relative_dim = v.number(); }},
      {"grid", [](auto& m, const auto& v) { m.layer.grid(sides_of(v)); }},
      {"cls", [](auto& m, const auto& v) { m.layer.cls(to_bool(v)); }},
      {"causal", [](auto& m, const auto& v) { m.layer.causal(true).grid({v.number()}); }},
  };
}

Arguments model_arguments(Kind kind) {
  Arguments arguments = {
      {"dim", [](auto& m, const auto& v) { m.model.architecture.dim = v.number(); }},
      {"depth", [](auto& m, const auto& v) { m.model.architecture.depth = v.number(); }},
      {"heads", [](auto& m, const auto& v) { m.model.architecture.heads = v.number(); }},
      {"mlp_dim", [](auto& m, const auto& v) { m.model.architecture.mlp_dim = v.number(); }},
      {"dim_head", [](auto& m, const auto& v) { m.model.architecture.dim_head = v.number(); }},
      {"relative_dim", [](auto& m, const auto& v) { m.model.position.relative_dim = v.number(); }},
      {"hybrid_layers", [](auto& m, const auto& v) { m.model.hybrid_layers = v.number(); }},
      {"pos_embedding", [](auto& m, const auto& v) { m.model.input_embedding = to_bool(v); }},
  };
  const Arguments vit = {
      {"image_size",
       [](auto& m, const auto& v) {
         const auto sides = sides_of(v);
         m.model.image_size = {sides.front(), sides.back()};
       }},
      {"patch_size", [](auto& m, const auto& v) { m.model.patch_size = v.number(); }},
      {"num_classes", [](auto& m, const auto& v) { m.model.classes = v.number(); }},
      {"channels", [](auto& m, const auto& v) { m.model.channels = v.number(); }},
  };
  const Arguments gpt = {
      {"seq_len", [](auto& m, const auto& v) { m.model.length = v.number(); }},
      {"vocab_size", [](auto& m, const auto& v) { m.model.vocabulary = v.number(); }},
  };
  const auto& own = kind == Kind::vit ? vit : gpt;
  arguments.insert(arguments.end(), own.begin(), own.end());
  return arguments;
}

// Their constructors have other names for two of the options.
std::string canonical_name(const std::string& name) {
  if (name == "dim_relenc") return "relative_dim";
  if (name == "tln_num") return "hybrid_layers";
  return name;
}

void set_arguments(AuthorsModule& module, const Arguments& arguments,
                   const std::map<std::string, std::string>& options) {
  std::vector<std::string> names;
  for (const auto& argument : arguments) names.emplace_back(argument.name);
  for (const auto& [given, text] : options) {
    const auto found = std::find(names.begin(), names.end(), canonical_name(given));
    require(found != names.end(), "authors' weights: a ", name_of(kAuthorsKinds, module.kind),
            " has no option '", given, "'", name_hint(given, names));
    if (text != "None") arguments[found - names.begin()].set(module, {given, text});
  }
}

void set_family(AuthorsModule& module, const std::string& family) {
  module.model.family = module.kind == Kind::gpt ? Family::gpt : Family::vit;
  set_authors_family(module.model, family);
}

}  // namespace

AuthorsModule read_authors_module(const std::string& family, const std::string& kind,
                                  const std::map<std::string, std::string>& options) {
  AuthorsModule module{parse_name("kind", kAuthorsKinds, kind), family, AttentionOptions(1), {}};
  if (module.kind == Kind::layer) {
    require(options.count("dim") == 1,
            "authors' weights: a layer needs dim, the number of channels");
    module.layer = AttentionOptions(1).heads(8).dim_head(64).position(authors_position(family));
    module.layer.init(Init::authors);
    set_arguments(module, layer_arguments(), options);
    return module;
  }
  const bool gpt = module.kind == Kind::gpt;
  if (is_authors_model(family))
    module.model =
        ModelOptions::named(family + (gpt && family.find('-') == std::string::npos ? "-256" : ""));
  else
    set_family(module, family);
  require((module.model.family == Family::gpt) == gpt, "authors' weights: '", family,
          "' is not the name of a ", kind);
  set_arguments(module, model_arguments(module.kind), options);
  const auto& a = module.model.architecture;
  module.model.architecture = architecture_of(a.depth, a.dim, a.heads, a.mlp_dim, a.dim_head);
  module.model.check();
  return module;
}

}  // namespace translution
