#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <mutex>

#include "translution/core/export.h"

namespace translution {

/// at::empty and at::zeros for large temporaries and tables on the CPU. Blocks of 1 MB or more use
/// 2 MB pages if the system has them, and a freed block is held for the next tensor of that size.
/// Without this, a step of vit-a/12 with Translution at batch 64 took 1.4 to 1.8 times as long:
/// touching a new gigabyte in 4 KB pages costs 0.4 s. Runtime::pool_limit limits the memory held.
TRANSLUTION_API at::Tensor large_empty(at::IntArrayRef sizes, const at::TensorOptions& options);
TRANSLUTION_API at::Tensor large_zeros(at::IntArrayRef sizes, const at::TensorOptions& options);

/// The memory pool behind large_empty: freed blocks, sorted by size. One per process; thread-safe.
/// Users control it through Runtime.
class BlockPool {
 public:
  static BlockPool& instance();

  /// Returns a block of at least `bytes` and sets `bytes` to its size.
  void* take(size_t& bytes);
  void give_back(void* block, size_t bytes);

  int64_t limit() const;
  void set_limit(int64_t bytes);
  int64_t bytes() const;  ///< bytes held and not in use
  /// Frees all blocks held; returns their bytes.
  int64_t release();

 private:
  BlockPool();
  void shrink_to(size_t bytes);

  mutable std::mutex mutex_;
  std::multimap<size_t, void*> free_;
  size_t free_bytes_ = 0;
  size_t limit_;
};

}  // namespace translution
