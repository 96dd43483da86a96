#pragma once

#include <c10/core/Device.h>

#include <string>

#include "translution/core/export.h"

namespace translution {

/// The device with this name: "cpu", "cuda", "cuda:1", "mps". The CPU uses the fused kernels; other
/// devices use the portable implementation. Throws a one-line error at another name, and at a
/// device that this LibTorch or this machine does not have.
TRANSLUTION_API c10::Device find_device(const std::string& name);

/// Blocks until the device has finished all submitted work.
TRANSLUTION_API void wait_for(c10::Device device);

}  // namespace translution
