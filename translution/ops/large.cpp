#include "translution/ops/large.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <cstdlib>
#include <iterator>
#include <new>

#include "translution/core/memory.h"

namespace translution {
namespace {

constexpr size_t kPage = size_t{2} << 20;
constexpr size_t kLarge = size_t{1} << 20;

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

BlockPool::BlockPool() : limit_(static_cast<size_t>(usable_bytes()) / 4) {}

// Never destroyed: tensors may outlive static objects.
BlockPool& BlockPool::instance() {
  static BlockPool* const pool = new BlockPool;
  return *pool;
}

void* BlockPool::take(size_t& bytes) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  {
    const std::lock_guard lock(mutex_);
    const auto found = free_.lower_bound(bytes);
    if (found != free_.end() && found->first <= bytes + bytes / 8) {
      void* block = found->second;
      bytes = found->first;
      free_bytes_ -= bytes;
      free_.erase(found);
      return block;
    }
  }
  void* block = nullptr;
  if (posix_memalign(&block, kPage, bytes) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  madvise(block, bytes, MADV_HUGEPAGE);  // only a hint; it may fail
#endif
  return block;
}

void BlockPool::give_back(void* block, size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (free_bytes_ + bytes <= limit_) {
      free_.emplace(bytes, block);
      free_bytes_ += bytes;
      return;
    }
  }
  std::free(block);
}

// Frees the largest blocks first. The caller holds the mutex.
void BlockPool::shrink_to(size_t bytes) {
  while (free_bytes_ > bytes) {
    const auto largest = std::prev(free_.end());
    std::free(largest->second);
    free_bytes_ -= largest->first;
    free_.erase(largest);
  }
}

int64_t BlockPool::limit() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(limit_);
}

void BlockPool::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = static_cast<size_t>(bytes);
  shrink_to(limit_);
}

int64_t BlockPool::bytes() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(free_bytes_);
}

int64_t BlockPool::release() {
  const std::lock_guard lock(mutex_);
  const size_t bytes = free_bytes_;
  shrink_to(0);
  return static_cast<int64_t>(bytes);
}

}  // namespace translution
