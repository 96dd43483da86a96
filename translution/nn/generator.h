#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>

#include "translution/core/export.h"

namespace translution {

/// A random generator owned by the caller, for initialisation and dropout. Layers and models that
/// are given one do not use LibTorch's default generator. The sequence is the same as after
/// LibTorch's manual_seed(seed) on that device.
TRANSLUTION_API at::Generator seeded_generator(uint64_t seed, const at::Device& device = at::kCPU);

}  // namespace translution
