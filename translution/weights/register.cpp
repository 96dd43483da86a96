// Conversion of weights as registered ops, so that other languages use the same mapping. Options
// are JSON (models/options_json.h), tensors are dictionaries by name.

#include <torch/library.h>

#include "translution/models/check_weights.h"
#include "translution/models/options_json.h"
#include "translution/models/settings.h"
#include "translution/weights/authors.h"
#include "translution/weights/convert.h"

namespace translution {
namespace {

using Texts = c10::Dict<std::string, std::string>;
using Tensors = c10::Dict<std::string, at::Tensor>;

std::map<std::string, std::string> map_of(const Texts& texts) {
  std::map<std::string, std::string> result;
  for (const auto& entry : texts) result[entry.key()] = entry.value();
  return result;
}

NamedTensors named(const Tensors& tensors) {
  NamedTensors result;
  for (const auto& entry : tensors) result[entry.key()] = entry.value();
  return result;
}

Tensors dict_of(const NamedTensors& tensors) {
  Tensors result;
  for (const auto& [name, tensor] : tensors) result.insert(name, tensor);
  return result;
}

// The options of a layer or a model as JSON (to_json).
std::string authors_options(const std::string& family, const std::string& kind,
                            const Texts& options) {
  const auto module = read_authors_module(family, kind, map_of(options));
  return module.kind == AuthorsModule::Kind::layer ? to_json(module.layer) : to_json(module.model);
}

Links links_of(const std::string& family, const std::string& kind, const std::string& options) {
  switch (parse_name("kind", kAuthorsKinds, kind)) {
    case AuthorsModule::Kind::layer:
      return authors_links(attention_from_json(options), family);
    case AuthorsModule::Kind::vit:
      return authors_links(model_from_json(Family::vit, options), family);
    default:
      return authors_links(model_from_json(Family::gpt, options), family);
  }
}

Tensors from_authors(const std::string& family, const std::string& kind, const std::string& options,
                     const Tensors& state, const std::string& source) {
  const auto ours =
      to_ours(links_of(family, kind, options), without_prefix(named(state), "module."), source);
  require_finite(ours, source);
  return dict_of(ours);
}

Tensors to_authors(const std::string& family, const std::string& kind, const std::string& options,
                   const Tensors& weights, const std::string& source) {
  return dict_of(to_theirs(links_of(family, kind, options), named(weights), source));
}

Texts texts_of_model(const ModelOptions& model) {
  Texts texts;
  for (const auto& [name, text] : model_texts(model)) texts.insert(name, text);
  return texts;
}

// The settings that a file stores with a model's weights.
Texts model_settings_op(const std::string& family, const std::string& options) {
  auto model = model_from_json(parse_name("family", kFamilies, family), options);
  if (model.init == Init::none) model.init = Init::scaled;  // the weights came from a file
  return texts_of_model(model);
}

// The settings of the model, which a file stores with the weights, and the weights.
std::tuple<Texts, Tensors> convert(const std::string& format, const Texts& settings,
                                   const Tensors& state, const std::string& source) {
  const auto model = convert_weights(parse_name("format", kWeightFormats, format), map_of(settings),
                                     named(state), source);
  return {texts_of_model(model.options), dict_of(model.tensors)};
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names = {"model"};
  for (const auto& group : model_settings())
    for (const auto& setting : group.settings) names.emplace_back(setting.name);
  return names;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def("authors_options(str family, str kind, Dict(str, str) options) -> str", authors_options);
  m.def(
      "from_authors(str family, str kind, str options, Dict(str, Tensor) state, "
      "str source) -> Dict(str, Tensor)",
      from_authors);
  m.def(
      "to_authors(str family, str kind, str options, Dict(str, Tensor) weights, "
      "str source) -> Dict(str, Tensor)",
      to_authors);
  m.def(
      "convert_weights(str format, Dict(str, str) settings, Dict(str, Tensor) state, str source) "
      "-> (Dict(str, str), Dict(str, Tensor))",
      convert);
  m.def("setting_names() -> str[]", setting_names);
  m.def("model_settings(str family, str options) -> Dict(str, str)", model_settings_op);
}

}  // namespace translution
