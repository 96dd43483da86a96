#pragma once

#include <string>
#include <vector>

#include "translution/nn/regrid.h"

namespace translution {

/// The sizes of the tensor `name`. Throws if it is missing or does not have `dims` dimensions.
std::vector<int64_t> sizes_of(const NamedTensors& tensors, const std::string& name, int64_t dims,
                              const std::string& source);

/// The number of layers: the first i for which no tensor's name begins with "<prefix>i.".
int64_t count_layers(const NamedTensors& tensors, const std::string& prefix);

}  // namespace translution
