#pragma once

#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/sources.h"
#include "translution/models/options.h"
#include "translution/train/evaluate.h"

namespace translution {

/// The unit of the numbers in the data.
TRANSLUTION_API TargetUnit target_unit(const DataSource& data);

/// Throws if the model cannot be trained or evaluated on the data: text for a vit, images for a
/// gpt, another image size, another number of channels, classes or axes, a larger vocabulary.
/// `name` is the name of the data. With `spare_classes`, the model may have more classes than the
/// data.
TRANSLUTION_API void require_data_fits(const ModelOptions& model, const DataSource& data,
                                       const std::string& name, bool spare_classes = false);

/// Sets image size, channels, classes, vocabulary, axes, points and the unit of a number of the
/// model from the data, except those listed in `fixed`; and the spacing of a lattice, if it is not
/// given: the mean distance of pairs that attend to each other, divided by the radius. Checks the
/// model, and throws if the data does not fit it.
TRANSLUTION_API void fit_to_data(ModelOptions& model, const DataSource& data,
                                 const std::string& name,
                                 const std::vector<std::string>& fixed = {});

}  // namespace translution
