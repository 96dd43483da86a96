#pragma once

#include "translution/core/settings.h"
#include "translution/models/options.h"

namespace translution {

using ModelSettings = std::vector<SettingGroup<ModelOptions>>;

/// Method and position, of a layer or a model.
const ModelSettings& position_settings();
/// All that decides a model beside its name.
const ModelSettings& model_settings();

/// The model with its name first, so that `read_model` gives the same options again.
SettingTexts model_texts(const ModelOptions& options);
/// The model that the texts describe, not checked: sizes may still be missing. Refuses settings
/// that its family does not have, and texts without a model. `prefix` as for `set_all`.
ModelOptions parse_model(const std::map<std::string, std::string>& texts,
                         const std::string& prefix = "");
/// The same, checked.
ModelOptions read_model(const std::map<std::string, std::string>& texts,
                        const std::string& prefix = "");

}  // namespace translution
