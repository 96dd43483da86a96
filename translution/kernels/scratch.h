#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace translution::kernels {

/// A scratch buffer that only grows. Aligned to cache lines, since a vector or tile that crosses
/// one loads slower.
template <typename T>
class Scratch {
 public:
  /// A pointer to at least `count` elements. Growing discards the contents.
  T* with(int64_t count) {
    if (count <= size_) return memory_.get();
    const size_t bytes = (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    memory_.reset(static_cast<T*>(std::aligned_alloc(64, bytes)));
    if (memory_ == nullptr) throw std::bad_alloc();
    size_ = count;
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> memory_;
  int64_t size_ = 0;
};

}  // namespace translution::kernels
