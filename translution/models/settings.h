#pragma once

#include "translution/core/settings.h"
#include "translution/models/options.h"

namespace translution {

/// Method and position, of a layer or a model.
const Settings<Position>& position_settings();
/// A layer, with its position.
const Settings<AttentionOptions>& attention_settings();
/// All that decides a model beside its name.
const Settings<ModelOptions>& model_settings();
/// The same with what the name of a model says, and the precision that a program chooses.
const Settings<ModelOptions>& all_model_settings();

/// The model with its name first, so that `read_model` gives the same options again.
SettingTexts model_texts(const ModelOptions& options);
/// The model that the texts describe, checked. Refuses settings that its family does not have, and
/// texts without a model. `prefix` as for `set_all`.
ModelOptions read_model(const std::map<std::string, std::string>& texts,
                        const std::string& prefix = "");

}  // namespace translution
