#include "translution/models/options_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "translution/core/error.h"
#include "translution/models/settings.h"

namespace translution {

using namespace detail;

namespace {

using Json = nlohmann::ordered_json;

constexpr Named<FieldType> kFieldTypes[] = {
    {FieldType::whole, "whole", "a whole number"},  {FieldType::real, "real", "a number"},
    {FieldType::on_off, "on_off", "true or false"}, {FieldType::word, "word", "a string"},
    {FieldType::sides, "sides", "whole numbers"},
};

// "relative_dim" for "relative-dim".
std::string json_name(const SettingInfo& setting) {
  auto name = setting.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool has_type(FieldType type, const Json& value) {
  switch (type) {
    case FieldType::whole:
      return value.is_number_integer();
    case FieldType::real:
      return value.is_number();
    case FieldType::on_off:
      return value.is_boolean();
    case FieldType::word:
      return value.is_string();
    case FieldType::sides:
      return value.is_number_integer() || value.is_array();
  }
  return false;
}

// The text of a value, as users would write it. Messages begin with `where`: "attention: heads".
std::string text_of(FieldType type, const std::string& where, const Json& value) {
  const auto name_of_type = [](FieldType expected) {
    for (const auto& entry : kFieldTypes)
      if (entry.value == expected) return entry.summary;
    return "";
  };
  require(has_type(type, value), where, ": expected ", name_of_type(type), ", got ", value.dump());
  if (type == FieldType::on_off) return name_of(kSwitch, value.get<bool>());
  if (type == FieldType::real) return number_text(value.get<double>());
  if (type == FieldType::word) return value.get<std::string>();
  if (!value.is_array()) return std::to_string(value.get<int64_t>());
  std::vector<std::string> sides;
  for (const auto& side : value) sides.push_back(text_of(FieldType::whole, where, side));
  return times(sides);
}

// The JSON value of a setting's text.
Json value_of(const SettingInfo& setting, const std::string& text) {
  const SettingValue value{setting.name, text};
  if (setting.type == FieldType::sides) return text.empty() ? Json::array() : Json(value.grid());
  if (text.empty()) return Json();
  if (setting.type == FieldType::whole) return value.number();
  if (setting.type == FieldType::on_off) return value.on();
  if (setting.type == FieldType::real) return fields::real().read(value);
  return text;
}

Json parse_object(const char* what, const std::string& text) {
  auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  require(json.is_object(), what, ": expected options as a JSON object, got '", text, "'");
  return json;
}

// Sets the options that the object has a value for. Throws on unknown keys.
template <typename Options>
void set_fields(const char* what, const Json& json, const Settings<Options>& groups,
                Options& options) {
  std::vector<std::string> known;
  for (const auto& group : groups)
    for (const auto& setting : group.settings) {
      if (!setting.is_for(options)) continue;
      const auto name = known.emplace_back(json_name(setting));
      const auto found = json.find(name);
      if (found == json.end() || found->is_null()) continue;
      setting.set(options, {name, text_of(setting.type, join(what, ": ", name), *found)});
    }
  for (const auto& entry : json.items())
    require(std::find(known.begin(), known.end(), entry.key()) != known.end(), what,
            ": there is no option '", entry.key(), "'", name_hint(entry.key(), known));
}

template <typename Options>
Json fields_of(const Settings<Options>& groups, const Options& options) {
  auto json = Json::object();
  for (const auto& group : groups)
    for (const auto& setting : group.settings)
      if (setting.is_for(options))
        json[json_name(setting)] = value_of(setting, setting.text(options));
  return json;
}

template <typename Options>
Json describe_fields(const Settings<Options>& groups, const Options& defaults) {
  auto fields = Json::array();
  for (const auto& group : groups)
    for (const auto& setting : group.settings)
      if (setting.is_for(defaults))
        fields.push_back(
            {{"name", json_name(setting)},
             {"type", name_of(kFieldTypes, setting.type)},
             {"names", setting.names},
             {"help", setting.help},
             {"unset", setting.unset},
             {"default",
              setting.unset.empty() ? value_of(setting, setting.text(defaults)) : Json()}});
  return fields;
}

}  // namespace

AttentionOptions attention_from_json(const std::string& text) {
  AttentionOptions options(0);
  set_fields("attention", parse_object("attention", text), attention_settings(), options);
  return options;
}

std::string to_json(const AttentionOptions& options) {
  return fields_of(attention_settings(), options).dump();
}

ModelOptions model_from_json(Family family, const std::string& text) {
  auto json = parse_object("model", text);
  auto options = ModelOptions::of_family(family);
  if (const auto name = json.find("model"); name != json.end() && !name->is_null()) {
    options = ModelOptions::named(text_of(FieldType::word, "model: model", *name));
    require(options.family == family, "model: expected the name of a ", name_of(kFamilies, family),
            ", got '", name->get<std::string>(), "'");
  }
  json.erase("model");
  set_fields("model", json, all_model_settings(), options);
  const auto& a = options.architecture;
  options.architecture = architecture_of(a.depth, a.dim, a.heads, a.mlp_dim, a.dim_head, family);
  options.check();
  return options;
}

std::string to_json(const ModelOptions& o) {
  Json json = {{"options", fields_of(all_model_settings(), o)},
               {"grid", o.grid()},
               {"tokens", o.tokens()},
               {"cls", o.has_cls()},
               {"causal", o.is_causal()},
               {"embeds_input", o.embeds_input()},
               {"layers", Json::array()}};
  for (int64_t layer = 0; layer < o.architecture.depth; ++layer)
    json["layers"].push_back(fields_of(attention_settings(), o.attention(layer)));
  return json.dump();
}

std::string fields_json(const std::string& kind) {
  if (kind == "attention") return describe_fields(attention_settings(), AttentionOptions(0)).dump();
  const auto family = parse_name("kind of fields", kFamilies, kind);
  return describe_fields(all_model_settings(), ModelOptions::of_family(family)).dump();
}

}  // namespace translution
