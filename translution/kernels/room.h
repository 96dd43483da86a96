#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace translution::kernels {

/// Scratch memory that only grows, aligned to cache lines: a vector or tile that crosses them loads
/// slower.
template <typename T>
class Room {
 public:
  T* with(int64_t count) {
    if (count <= size_) return memory_.get();
    const auto bytes = (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    memory_.reset(static_cast<T*>(std::aligned_alloc(64, static_cast<size_t>(bytes))));
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
