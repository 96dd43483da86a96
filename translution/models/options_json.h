#pragma once

#include <string>

#include "translution/models/options.h"

namespace translution {

/// Options as a JSON object, for other languages. The keys are the names of the settings
/// (models/settings.h) with '_' for '-'. A key that is missing or null leaves the default. Throws
/// on an unknown key or a value of the wrong type.
AttentionOptions attention_from_json(const std::string& text);
std::string to_json(const AttentionOptions& options);

/// The same for a model of that family. The key "model" may give a name such as "vit-a/12"; the
/// other keys override the options of that name. The result is checked.
ModelOptions model_from_json(Family family, const std::string& text);
/// {"options": …, "grid": …, "tokens": …, "cls": …, "causal": …, "embeds_input": …, "layers": […]}:
/// all options, values derived from them, and the attention options of each layer.
std::string to_json(const ModelOptions& options);

/// The options of "attention", "vit" or "gpt", for generating signatures in other languages:
/// [{"name": …, "type": "whole|real|on_off|word|sides", "names": […], "help": …, "default": …}, …].
/// If an option is unset by default, "default" is null and "unset" describes the meaning.
std::string fields_json(const std::string& kind);

}  // namespace translution
