#pragma once

#include <string>

#include "translution/core/export.h"
#include "translution/models/options.h"
#include "translution/nn/regrid.h"

namespace translution {

/// Refuses a value that is not finite: one line with `where`, the tensor and the value.
TRANSLUTION_API void require_finite(const NamedTensors& tensors, const std::string& where);

/// Refuses tensors that are not those of the model: one line with `where` and the first name or
/// shape that differs. Allocates nothing, so that a small file cannot ask for a huge model.
TRANSLUTION_API void require_shapes(const ModelOptions& model, const NamedTensors& tensors,
                                    const std::string& where);

}  // namespace translution
