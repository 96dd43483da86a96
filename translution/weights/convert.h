#pragma once

#include <map>
#include <string>

#include "translution/core/export.h"
#include "translution/core/names.h"
#include "translution/weights/baselines.h"

namespace translution {

/// Names and layout of tensors.
enum class WeightFormat { translution, authors, gpt2, timm };

inline constexpr Named<WeightFormat> kWeightFormats[] = {
    {WeightFormat::translution, "translution", "ours"},
    {WeightFormat::authors, "authors", "the authors' released code"},
    {WeightFormat::gpt2, "gpt2", "GPT-2 with Hugging Face's tensor names"},
    {WeightFormat::timm, "timm", "timm's vit_*"},
};

/// Converts tensors to ours. `settings` (models/settings.h) describe the model; for GPT-2 and
/// timm's models they must be empty, because the model is read from the tensors. If all names begin
/// with "module.", that prefix is removed. Error messages begin with `source`, or put `prefix`
/// before the name of a setting.
TRANSLUTION_API ConvertedModel convert_weights(WeightFormat from,
                                               const std::map<std::string, std::string>& settings,
                                               const NamedTensors& tensors,
                                               const std::string& source,
                                               const std::string& prefix = "");

/// The weights of a model with the names and layout of the authors' released code. Throws on models
/// that their code does not have. `name` is the authors' name of the model, or empty. Error
/// messages begin with `source`.
TRANSLUTION_API NamedTensors in_authors_format(const ConvertedModel& model, const std::string& name,
                                               const std::string& source);

}  // namespace translution
