#include "translution/ops/large.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include "translution/core/memory.h"

namespace translution {
namespace {

constexpr size_t kPage = size_t{2} << 20;
constexpr size_t kLarge = size_t{1} << 20;

/// Freed blocks by size, for the next tensor that they fit.
class BlockPool {
 public:
  // Never destroyed: tensors may outlive everything else that is static.
  static BlockPool& instance() {
    static BlockPool* const pool = new BlockPool;
    return *pool;
  }

  /// A block of at least `bytes`; `bytes` becomes its size.
  void* take(size_t& bytes) {
    bytes = (bytes + kPage - 1) / kPage * kPage;
    {
      const std::lock_guard lock(mutex_);
      const auto found = free_.lower_bound(bytes);
      if (found != free_.end() && found->first <= bytes + bytes / 8) {
        void* block = found->second;
        bytes = found->first;
        kept_ -= bytes;
        free_.erase(found);
        return block;
      }
    }
    void* block = nullptr;
    if (posix_memalign(&block, kPage, bytes) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    madvise(block, bytes, MADV_HUGEPAGE);  // a wish: without huge pages the memory works as well
#endif
    return block;
  }

  void give_back(void* block, size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (kept_ + bytes <= limit_) {
        free_.emplace(bytes, block);
        kept_ += bytes;
        return;
      }
    }
    std::free(block);
  }

  size_t release() {
    const std::lock_guard lock(mutex_);
    const size_t bytes = kept_;
    for (const auto& [size, block] : free_) std::free(block);
    free_.clear();
    kept_ = 0;
    return bytes;
  }

 private:
  std::mutex mutex_;
  std::multimap<size_t, void*> free_;
  size_t kept_ = 0;
  const size_t limit_ = static_cast<size_t>(usable_bytes()) / 4;
};

size_t byte_count(at::IntArrayRef sizes, const at::TensorOptions& options) {
  size_t bytes = options.dtype().itemsize();
  for (const int64_t size : sizes) bytes *= static_cast<size_t>(size);
  return bytes;
}

}  // namespace

at::Tensor large_empty(at::IntArrayRef sizes, const at::TensorOptions& options) {
  size_t bytes = byte_count(sizes, options);
  if (bytes < kLarge || !options.device().is_cpu()) return at::empty(sizes, options);
  void* block = BlockPool::instance().take(bytes);
  return at::from_blob(
      block, sizes, [bytes](void* freed) { BlockPool::instance().give_back(freed, bytes); },
      options);
}

at::Tensor large_zeros(at::IntArrayRef sizes, const at::TensorOptions& options) {
  return large_empty(sizes, options).zero_();
}

size_t release_kept_memory() { return BlockPool::instance().release(); }

}  // namespace translution
