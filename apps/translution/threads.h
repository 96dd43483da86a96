#pragma once

#include <ATen/Parallel.h>

#include "translution/ops/runtime.h"

namespace translution::cli {

/// For our kernels and for LibTorch's: teams of one size follow each other without delay.
inline void use_threads(int count) {
  runtime().set_threads(count);
  at::set_num_threads(count);
}

}  // namespace translution::cli
