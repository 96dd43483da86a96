#pragma once

#include "translution/core/export.h"
#include "translution/core/settings.h"
#include "translution/models/options.h"

namespace translution {

/// Settings of the method and position options, of a layer or a model.
TRANSLUTION_API const Settings<Position>& position_settings();
/// Settings of an attention layer, including position_settings().
TRANSLUTION_API const Settings<AttentionOptions>& attention_settings();
/// Settings of a model, except for what its name gives and the precision.
TRANSLUTION_API const Settings<ModelOptions>& model_settings();
/// model_settings(), the architecture's sizes, patch size or length, and the precision.
TRANSLUTION_API const Settings<ModelOptions>& all_model_settings();

/// The texts of a model's settings, "model" (its name) first. read_model() reads the same options
/// back.
TRANSLUTION_API SettingTexts model_texts(const ModelOptions& options);
/// Reads a model from texts without ModelOptions::check(): sizes may still be missing. Throws if
/// "model" is missing, or on settings that do not apply to its family. `prefix` as for `set_all`.
TRANSLUTION_API ModelOptions parse_model(const std::map<std::string, std::string>& texts,
                                         const std::string& prefix = "");
/// The same, with ModelOptions::check().
TRANSLUTION_API ModelOptions read_model(const std::map<std::string, std::string>& texts,
                                        const std::string& prefix = "");

}  // namespace translution
