#include "translution/train/model_file.h"

#include <filesystem>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/models/bf16_weights.h"
#include "translution/models/check_weights.h"
#include "translution/models/memory_check.h"
#include "translution/models/settings.h"
#include "translution/train/checkpoint.h"

namespace translution {

using namespace detail;

namespace {

using Texts = std::map<std::string, std::string>;

Texts settings_in(const nlohmann::json& state, const std::string& path) {
  const auto config = state.is_object() ? state.find("config") : state.end();
  ensure(config != state.end() && config->is_object(), path,
         ": was not written by `translution train`");
  Texts texts;
  for (const auto& [name, value] : config->items())
    if (value.is_string()) texts[name] = value;
  return texts;
}

StoredModel stored_in(const FoundCheckpoint& found) {
  const auto& state = found.manifest.state;
  StoredModel model{found.path, read_model(settings_in(state, found.path))};
  try {
    model.classes = state.value("classes", model.classes);
    model.vocabulary = state.value("vocabulary", model.vocabulary);
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(join(found.path, ": was not written by `translution train`"));
  }
  model.step = found.manifest.step;
  return model;
}

ModelOptions options_in(const std::string& path, const char* advice) {
  const auto header = load_safetensors_header(path);
  const Texts texts(header.metadata.begin(), header.metadata.end());
  ensure(texts.count("model") == 1, path, ": has no model options in its metadata; ", advice);
  return read_model(texts, path + ": ");
}

}  // namespace

StoredModel find_model(const std::string& path) {
  auto model = std::filesystem::is_regular_file(path)
                   ? StoredModel{path, options_in(path, kDescribeAdvice)}
                   : stored_in(find_checkpoint(path));
  if (model.vocabulary == 0) model.vocabulary = model.options.vocabulary;
  return model;
}

TensorConversion weights_held_for(const ModelOptions& options) {
  if (options.precision != Precision::bf16) return {};
  require_memory_to_evaluate(options, 1, "choose a smaller model");
  return hold_in_bf16(options);
}

NamedTensors load_model(const std::string& path) {
  if (std::filesystem::is_directory(path)) return load_weights(path).content.model;
  auto tensors = load_safetensors(path).tensors;
  require_finite(tensors, path);
  return tensors;
}

void save_described(const std::string& path, const ConvertedModel& model) {
  const auto texts = model_texts(model.options);
  save_safetensors(path, model.tensors, {texts.begin(), texts.end()});
}

ConvertedModel load_described(const std::string& path, const char* advice, Precision precision) {
  if (std::filesystem::is_directory(path)) {
    const auto found = find_checkpoint(path);
    auto options = read_model(settings_in(found.manifest.state, path));
    options.precision = precision;
    return {options, load_weights(found, weights_held_for(options)).content.model};
  }
  auto options = options_in(path, advice);
  options.precision = precision;
  const auto tensors = load_safetensors(path, weights_held_for(options)).tensors;
  require_finite(tensors, path);
  return {options, tensors};
}

}  // namespace translution
