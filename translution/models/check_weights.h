#pragma once

#include <string>

#include "translution/core/export.h"
#include "translution/models/options.h"
#include "translution/nn/regrid.h"

namespace translution {

/// Throws if a tensor holds a value that is not finite. The message has `where`, the tensor's name
/// and the value.
TRANSLUTION_API void require_finite(const NamedTensors& tensors, const std::string& where);

/// Throws unless the tensors have the model's names and shapes. The message has `where` and the
/// first difference. Allocates nothing, so a small file that describes a huge model is harmless.
TRANSLUTION_API void require_shapes(const ModelOptions& model, const NamedTensors& tensors,
                                    const std::string& where);

}  // namespace translution
