#pragma once

#include <ATen/Parallel.h>

#include "translution/ops/runtime.h"

namespace translution {

/// While one lives, LibTorch and our kernels use so many threads.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : torchs_(at::get_num_threads()) { set(count); }
  ~ThreadCount() {
    runtime().set_threads(0);
    at::set_num_threads(torchs_);
  }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

  void set(int count) {
    runtime().set_threads(count);
    at::set_num_threads(count);
  }

 private:
  const int torchs_;
};

}  // namespace translution
