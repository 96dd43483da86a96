#pragma once

#include <string>
#include <vector>

#include "translution/nn/regrid.h"

namespace translution {

/// The sizes of a tensor that tells how large a model is; refuses one that is missing or has
/// another number of dimensions.
std::vector<int64_t> sizes_of(const NamedTensors& tensors, const std::string& name, int64_t dims,
                              const std::string& source);

/// How many layers have tensors "<prefix>0.…", "<prefix>1.…".
int64_t count_layers(const NamedTensors& tensors, const std::string& prefix);

}  // namespace translution
