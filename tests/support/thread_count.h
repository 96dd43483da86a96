#pragma once

#include <ATen/Parallel.h>

namespace translution {

/// While one lives, LibTorch and our ops use so many threads.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~ThreadCount() { at::set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  const int before_;
};

}  // namespace translution
