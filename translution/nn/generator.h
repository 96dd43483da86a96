#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>

#include "translution/core/export.h"

namespace translution {

/// Random numbers of the caller's own, for weights and dropout: layers and models that are given
/// one neither read nor change the generator of the process. The numbers are those that LibTorch's
/// manual_seed gives on that device.
TRANSLUTION_API at::Generator seeded_generator(uint64_t seed, const at::Device& device = at::kCPU);

}  // namespace translution
