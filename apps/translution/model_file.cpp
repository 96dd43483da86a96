#include "model_file.h"

#include <filesystem>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/models/check_weights.h"
#include "translution/models/settings.h"
#include "translution/train/checkpoint.h"

namespace translution::cli {
namespace {

using Texts = std::map<std::string, std::string>;

Texts settings_of_checkpoint(const std::string& path) {
  const auto state = load_manifest(path).state;
  const auto config = state.is_object() ? state.find("config") : state.end();
  ensure(config != state.end() && config->is_object(), path,
         ": was not written by `translution train`");
  Texts texts;
  for (const auto& [name, value] : config->items())
    if (value.is_string()) texts[name] = value;
  return texts;
}

}  // namespace

void save_described(const std::string& path, const ConvertedModel& model) {
  const auto texts = model_texts(model.options);
  save_safetensors(path, model.tensors, {texts.begin(), texts.end()});
}

ConvertedModel load_described(const std::string& path, const char* advice) {
  if (std::filesystem::is_directory(path))
    return {read_model(settings_of_checkpoint(path)), load_model(path)};
  const auto file = load_safetensors(path);
  const Texts texts(file.metadata.begin(), file.metadata.end());
  ensure(texts.count("model") == 1, path, ": does not say which model it holds; ", advice);
  require_finite(file.tensors, path);
  return {read_model(texts, path + ": "), file.tensors};
}

}  // namespace translution::cli
