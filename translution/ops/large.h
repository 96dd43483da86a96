#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <mutex>

#include "translution/core/export.h"

namespace translution {

/// at::empty and at::zeros for the large temporaries and tables of the CPU. From 1 MB on, memory is
/// taken in pages of 2 MB, where the system has them, and kept for the next tensor of that size
/// when it is freed: a step of vit-a/12 with Translution at batch 64 took 1.4 to 1.8 times as long
/// without (touching a fresh gigabyte in pages of 4 KB costs 0.4 s). Runtime::pool_limit says how
/// much is kept so.
TRANSLUTION_API at::Tensor large_empty(at::IntArrayRef sizes, const at::TensorOptions& options);
TRANSLUTION_API at::Tensor large_zeros(at::IntArrayRef sizes, const at::TensorOptions& options);

/// Freed blocks by size, for the next tensor that they fit: the memory behind these. One for the
/// process; any thread may call it. Users reach it through Runtime.
class BlockPool {
 public:
  static BlockPool& instance();

  /// A block of at least `bytes`; `bytes` becomes its size.
  void* take(size_t& bytes);
  void give_back(void* block, size_t bytes);

  int64_t limit() const;
  void set_limit(int64_t bytes);
  int64_t bytes() const;  ///< kept, and not in use
  /// Frees them; returns how many they were.
  int64_t release();

 private:
  BlockPool();
  void shrink_to(size_t bytes);

  mutable std::mutex mutex_;
  std::multimap<size_t, void*> free_;
  size_t kept_ = 0;
  size_t limit_;
};

}  // namespace translution
