#pragma once

#include <ATen/Parallel.h>

#include "translution/ops/runtime.h"

namespace translution {

/// While this object exists, LibTorch and our kernels use `count` threads.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : torch_threads_(at::get_num_threads()) { set(count); }
  ~ThreadCount() {
    runtime().set_threads(0);
    at::set_num_threads(torch_threads_);
  }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

  void set(int count) {
    runtime().set_threads(count);
    at::set_num_threads(count);
  }

 private:
  const int torch_threads_;
};

}  // namespace translution
