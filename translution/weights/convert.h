#pragma once

#include <map>
#include <string>

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
ConvertedModel convert_weights(WeightFormat from,
                               const std::map<std::string, std::string>& settings,
                               const NamedTensors& tensors, const std::string& source,
                               const std::string& prefix = "");

}  // namespace translution
