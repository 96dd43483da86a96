#pragma once

#include <c10/core/Device.h>

#include <string>

#include "translution/core/export.h"

namespace translution {

/// The device of a name: "cpu", "cuda", "cuda:1", "mps". The CPU has kernels of its own; others
/// compute the same in plain LibTorch calls. Refuses another name, and a device that this LibTorch
/// or this machine does not have: one line each.
TRANSLUTION_API c10::Device find_device(const std::string& name);

/// Returns when all work given to the device is done.
TRANSLUTION_API void wait_for(c10::Device device);

}  // namespace translution
