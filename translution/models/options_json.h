#pragma once

#include <string>

#include "translution/models/options.h"

namespace translution {

/// Options as a JSON object, for languages that have no structs of ours; the names are those of the
/// settings (models/settings.h) with '_' for '-'. What is left out or null stays as it is by
/// default; a name that does not exist, or a value of another type, is refused with one line.
AttentionOptions attention_from_json(const std::string& text);
std::string to_json(const AttentionOptions& options);

/// The same for a model of that family. A name such as "vit-a/12" may be given as "model"; other
/// entries change what it stands for. The options are checked.
ModelOptions model_from_json(Family family, const std::string& text);
/// {"options": …, "grid": …, "tokens": …, "cls": …, "causal": …, "embeds_input": …, "layers": […]}:
/// all options, what follows from them, and the options of each layer's attention.
std::string to_json(const ModelOptions& options);

/// The fields of "attention", "vit" or "gpt", from which signatures in other languages are made:
/// [{"name": …, "type": "whole|real|on_off|word|sides", "names": […], "help": …, "default": …}, …].
/// Where the default is no value, it is null and "unset" says what counts.
std::string fields_json(const std::string& kind);

}  // namespace translution
