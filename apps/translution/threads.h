#pragma once

#include <ATen/Parallel.h>

#include "translution/ops/runtime.h"

namespace translution::cli {

/// Sets the number of threads of our kernels and of LibTorch's. With the same number, switching
/// between the two costs nothing.
inline void use_threads(int count) {
  runtime().set_threads(count);
  at::set_num_threads(count);
}

}  // namespace translution::cli
