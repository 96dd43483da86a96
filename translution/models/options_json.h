#pragma once

#include <string>

#include "translution/models/options.h"

namespace translution {

/// The ways to start that a program may ask for: all of them.
inline constexpr Named<Init> kEveryInit[] = {
    {Init::scaled, "scaled", "by the number of channels that go in"},
    {Init::authors, "authors", "as in the authors' released code"},
    {Init::none, "none", "left as allocated"},
};

/// Options as a JSON object with the names that the fields have here, for languages that have no
/// structs of ours. What is left out stays as it is by default; a name that does not exist, or a
/// value of another type, is refused with one line.
AttentionOptions attention_from_json(const std::string& text);
std::string to_json(const AttentionOptions& options);

/// The same for a model of that family. A name such as "vit-a/12" may be given as "model"; other
/// entries change what it stands for. The options are checked.
ModelOptions model_from_json(Family family, const std::string& text);
/// {"options": …, "grid": …, "tokens": …, "cls": …, "causal": …, "embeds_input": …, "layers": […]}:
/// all options, what follows from them, and the options of each layer's attention.
std::string to_json(const ModelOptions& options);

}  // namespace translution
