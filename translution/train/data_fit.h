#pragma once

#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/data/sources.h"
#include "translution/models/options.h"

namespace translution {

/// Refuses data that the model cannot learn from or be evaluated on: text for a vit, images for a
/// gpt, images of another size, other numbers of channels or classes, a larger vocabulary. `name`
/// is that of the data. With `spare_classes` the model may have more classes than the data.
TRANSLUTION_API void require_data_fits(const ModelOptions& model, const DataSource& data,
                                       const std::string& name, bool spare_classes = false);

/// Sets the sizes of the model that follow from the data, except those in `fixed`, checks the
/// model, and refuses data that does not fit.
TRANSLUTION_API void fit_to_data(ModelOptions& model, const DataSource& data,
                                 const std::string& name,
                                 const std::vector<std::string>& fixed = {});

}  // namespace translution
