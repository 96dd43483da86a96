#pragma once

#include "translution/core/export.h"
#include "translution/core/settings.h"
#include "translution/models/options.h"

namespace translution {

/// Method and position, of a layer or a model.
TRANSLUTION_API const Settings<Position>& position_settings();
/// A layer, with its position.
TRANSLUTION_API const Settings<AttentionOptions>& attention_settings();
/// All that decides a model beside its name.
TRANSLUTION_API const Settings<ModelOptions>& model_settings();
/// The same with what the name of a model says, and the precision that a program chooses.
TRANSLUTION_API const Settings<ModelOptions>& all_model_settings();

/// The model with its name first, so that `read_model` gives the same options again.
TRANSLUTION_API SettingTexts model_texts(const ModelOptions& options);
/// The model that the texts describe, not checked: sizes may still be missing. Refuses settings
/// that its family does not have, and texts without a model. `prefix` as for `set_all`.
TRANSLUTION_API ModelOptions parse_model(const std::map<std::string, std::string>& texts,
                                         const std::string& prefix = "");
/// The same, checked.
TRANSLUTION_API ModelOptions read_model(const std::map<std::string, std::string>& texts,
                                        const std::string& prefix = "");

}  // namespace translution
