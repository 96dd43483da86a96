#pragma once

#include <map>
#include <string>

#include "translution/core/export.h"
#include "translution/core/names.h"
#include "translution/weights/baselines.h"

namespace translution {

/// Who named and laid out the tensors.
enum class WeightFormat { translution, authors, gpt2, timm };

inline constexpr Named<WeightFormat> kWeightFormats[] = {
    {WeightFormat::translution, "translution", "ours"},
    {WeightFormat::authors, "authors", "the authors' released code"},
    {WeightFormat::gpt2, "gpt2", "GPT-2 under the names of Hugging Face"},
    {WeightFormat::timm, "timm", "timm's vit_*"},
};

/// The model that `settings` (models/settings.h) describe, with these weights; GPT-2 and timm's
/// models tell theirs themselves and take none. A prefix "module." of all names is left out.
/// Messages call the tensors `source`, and have `prefix` in front of a setting.
TRANSLUTION_API ConvertedModel convert_weights(WeightFormat from,
                                               const std::map<std::string, std::string>& settings,
                                               const NamedTensors& tensors,
                                               const std::string& source,
                                               const std::string& prefix = "");

/// The weights of a model under the names and in the layout of the authors' released code. Refuses
/// models that it does not have. `name` is the authors' name of the model, or empty; messages call
/// the tensors `source`.
TRANSLUTION_API NamedTensors in_authors_format(const ConvertedModel& model, const std::string& name,
                                               const std::string& source);

}  // namespace translution
