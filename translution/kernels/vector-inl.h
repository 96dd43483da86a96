#pragma once

// Vectors of TRANSLUTION_VECTOR_BYTES, which isa_*.cpp define. In an anonymous namespace for the
// same reason as row_ops-inl.h.

#include <cstdint>

namespace translution::kernels {
namespace {

template <typename T, int64_t bytes = TRANSLUTION_VECTOR_BYTES>
struct Vector {
  static constexpr int64_t kLanes = bytes / sizeof(T);
  typedef T Type __attribute__((vector_size(bytes)));
  typedef T Unaligned __attribute__((vector_size(bytes), aligned(sizeof(T))));
  using Half = Vector<T, bytes / 2>;

  static Type load(const T* p) { return *reinterpret_cast<const Unaligned*>(p); }
  static void store(T* p, Type v) { *reinterpret_cast<Unaligned*>(p) = v; }
  static Type all(T x) { return Type{} + x; }
  static T sum(Type v) {
    if constexpr (bytes > 16) {
      typename Half::Type low, high;
      __builtin_memcpy(&low, &v, bytes / 2);
      __builtin_memcpy(&high, reinterpret_cast<const char*>(&v) + bytes / 2, bytes / 2);
      return Half::sum(low + high);
    } else if constexpr (kLanes == 4) {
      v += __builtin_shufflevector(v, v, 2, 3, 0, 1);
      return v[0] + v[1];
    } else {
      return v[0] + v[1];
    }
  }
};

// Calls work(V{}, r) for rows r … r + V::kLanes - 1; the remainder uses narrower vectors.
template <typename T, int64_t bytes = TRANSLUTION_VECTOR_BYTES, typename Work>
void over_rows(int64_t r, int64_t rows, const Work& work) {
  using V = Vector<T, bytes>;
  for (; r + V::kLanes <= rows; r += V::kLanes) work(V{}, r);
  if constexpr (V::kLanes > 1)
    if (r < rows) over_rows<T, bytes / 2>(r, rows, work);
}

}  // namespace
}  // namespace translution::kernels
