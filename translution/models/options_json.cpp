#include "translution/models/options_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "translution/core/error.h"
#include "translution/core/names.h"

namespace translution {
namespace {

using Json = nlohmann::ordered_json;

/// Fields set from the entries of an object.
class Reader {
 public:
  Reader(const char* what, const std::string& text) : what_(what) {
    json_ = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    require(json_.is_object(), what_, ": wanted options as a JSON object, got '", text, "'");
  }

  void operator()(const char* name, int64_t& field) {
    if (const Json* value = find(name)) field = number(name, *value);
  }
  void operator()(const char* name, bool& field) {
    const Json* value = find(name);
    if (!value) return;
    wants(value->is_boolean(), name, "true or false", *value);
    field = value->get<bool>();
  }
  void operator()(const char* name, double& field) {
    const Json* value = find(name);
    if (!value) return;
    wants(value->is_number(), name, "a number", *value);
    field = value->get<double>();
  }
  void operator()(const char* name, std::vector<int64_t>& field) {
    const Json* value = find(name);
    if (!value) return;
    wants(value->is_array() || value->is_number_integer(), name, "whole numbers", *value);
    field.clear();
    for (const auto& side : value->is_array() ? *value : Json::array({*value}))
      field.push_back(number(name, side));
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& field) {
    const Json* value = find(name);
    if (!value) return;
    field.reset();
    if (!value->is_null()) (*this)(name, field.emplace());
  }
  template <typename Choice, size_t count>
  void operator()(const char* name, Choice& field, const Named<Choice> (&table)[count]) {
    if (const Json* value = find(name)) field = parse_name(name, table, word(name, *value));
  }
  void operator()(const char* name, Roles& field) {
    if (const Json* value = find(name)) field = Roles::parse(word(name, *value));
  }

  /// What is there under `name`, or an empty text.
  std::string text(const char* name) {
    const Json* value = find(name);
    return value ? word(name, *value) : "";
  }

  /// Refuses names that nothing has asked for.
  void finish() const {
    for (const auto& entry : json_.items())
      if (std::find(known_.begin(), known_.end(), entry.key()) == known_.end())
        throw std::invalid_argument(join(what_, ": there is no option '", entry.key(), "'",
                                         name_hint(entry.key(), known_)));
  }

 private:
  const Json* find(const char* name) {
    known_.emplace_back(name);
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }
  void wants(bool ok, const char* name, const char* wanted, const Json& value) const {
    require(ok, what_, ": ", name, " wants ", wanted, ", got ", value.dump());
  }
  int64_t number(const char* name, const Json& value) const {
    wants(value.is_number_integer(), name, "a whole number", value);
    return value.get<int64_t>();
  }
  std::string word(const char* name, const Json& value) const {
    wants(value.is_string(), name, "a text", value);
    return value.get<std::string>();
  }

  const char* what_;
  Json json_;
  std::vector<std::string> known_;
};

/// The entries of an object from the fields.
class Writer {
 public:
  template <typename T>
  void operator()(const char* name, const T& field) {
    json[name] = field;
  }
  void operator()(const char* name, const Roles& field) { json[name] = field.str(); }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& field) {
    json[name] = field ? Json(*field) : Json();
  }
  template <typename Choice, size_t count>
  void operator()(const char* name, const Choice& field, const Named<Choice> (&table)[count]) {
    json[name] = name_of(table, field);
  }

  Json json = Json::object();
};

// Each field once, for both directions.
template <typename Visitor>
void visit(Position& p, Visitor& field) {
  field("method", p.method, kMethods);
  field("roles", p.roles);
  field("encoding", p.encoding, kEncodings);
  field("sharing", p.sharing, kSharings);
  field("radius", p.radius);
  field("relative_dim", p.relative_dim);
  field("shared_qkv", p.shared_qkv);
  field("mixing", p.mixing, kMixings);
  field("rotary", p.rotary);
  field("angles", p.angles, kAngles);
  field("kernel_size", p.kernel_size);
}

template <typename Visitor>
void visit(AttentionOptions& o, Visitor& field) {
  field("dim", o.dim());
  field("heads", o.heads());
  field("dim_head", o.dim_head());
  field("grid", o.grid());
  field("cls", o.cls());
  field("causal", o.causal());
  visit(o.position(), field);
  field("qkv_bias", o.qkv_bias());
  field("dropout", o.dropout());
  field("init", o.init(), kEveryInit);
  field("workspace", o.workspace());
  field("precision", o.precision(), kPrecisions);
}

template <typename Visitor>
void visit(ModelOptions& o, Visitor& field) {
  field("depth", o.architecture.depth);
  field("dim", o.architecture.dim);
  field("heads", o.architecture.heads);
  field("mlp_dim", o.architecture.mlp_dim);
  field("dim_head", o.architecture.dim_head);
  if (o.family == Family::vit) {
    field("image_size", o.image_size);
    field("patch_size", o.patch_size);
    field("channels", o.channels);
    field("classes", o.classes);
    field("pooling", o.pooling, kPoolings);
  } else {
    field("length", o.length);
    field("vocabulary", o.vocabulary);
  }
  visit(o.position, field);
  field("input_embedding", o.input_embedding);
  field("hybrid_layers", o.hybrid_layers);
  field("rest", o.rest, kMethods);
  field("extra_norms", o.extra_norms);
  field("qkv_bias", o.qkv_bias);
  field("gelu", o.gelu, kGelus);
  field("norm_eps", o.norm_eps);
  field("dropout", o.dropout);
  field("init", o.init, kEveryInit);
  field("precision", o.precision, kPrecisions);
}

template <typename Options>
Json fields_of(Options options) {
  Writer writer;
  visit(options, writer);
  return writer.json;
}

}  // namespace

AttentionOptions attention_from_json(const std::string& text) {
  Reader reader("attention", text);
  AttentionOptions options(0);
  visit(options, reader);
  reader.finish();
  return options;
}

std::string to_json(const AttentionOptions& options) { return fields_of(options).dump(); }

ModelOptions model_from_json(Family family, const std::string& text) {
  Reader reader("model", text);
  const auto name = reader.text("model");
  auto options = name.empty() ? ModelOptions() : ModelOptions::named(name);
  const char* wanted = family == Family::vit ? "vit" : "gpt";
  require(name.empty() || options.family == family, "model: wanted the name of a ", wanted,
          ", got '", name, "'");
  options.family = family;
  visit(options, reader);
  reader.finish();
  const auto& a = options.architecture;
  options.architecture = architecture_of(a.depth, a.dim, a.heads, a.mlp_dim, a.dim_head);
  if (options.image_size.size() == 1) options.image_size.push_back(options.image_size[0]);
  options.check();
  return options;
}

std::string to_json(const ModelOptions& o) {
  Json json = {{"options", fields_of(o)}, {"grid", o.grid()},
               {"tokens", o.tokens()},    {"cls", o.has_cls()},
               {"causal", o.is_causal()}, {"embeds_input", o.embeds_input()},
               {"layers", Json::array()}};
  for (int64_t layer = 0; layer < o.architecture.depth; ++layer)
    json["layers"].push_back(fields_of(o.attention(layer)));
  return json.dump();
}

}  // namespace translution
