#pragma once

#include <cstdint>
#include <memory>

#include "translution/kernels/row_ops.h"

namespace translution::kernels {

/// Features [B,rows,heads*D]. Only the channels must be contiguous, so a slice of a wider
/// projection needs no copy.
template <typename T>
struct Features {
  T* data = nullptr;  ///< null: not needed
  int64_t batch_stride = 0, row_stride = 0;
};

/// Pointer to one head of the features; `item` is sample * heads + head.
template <typename T>
T* head_of(const Features<T>& x, int64_t item, int64_t heads, int64_t width) {
  return x.data + item / heads * x.batch_stride + item % heads * width;
}

/// Content attention, one sample and head at a time, on the calling thread. Features are read and
/// written in place, without copies. Maps are [B,heads,Nq,N].
template <typename T>
class ContentPasses {
 public:
  struct Shape {
    int64_t heads, queries, tokens, width, value_width;  ///< widths of one head
  };
  explicit ContentPasses(const Shape& shape);

  /// maps = q k^T for the items [begin, end).
  void scores(int64_t begin, int64_t end, Features<const T> q, Features<const T> k, T* maps);
  /// out = maps v.
  void values(int64_t begin, int64_t end, const T* maps, Features<const T> v, Features<T> out);
  /// d_maps = d_out v^T, and dv = maps^T d_out; either may be null.
  void values_backward(int64_t begin, int64_t end, const T* maps, Features<const T> v,
                       Features<const T> d_out, T* d_maps, Features<T> dv);
  /// dq = d_scores k, dk = d_scores^T q; either may be null.
  void scores_backward(int64_t begin, int64_t end, Features<const T> q, Features<const T> k,
                       const T* d_scores, Features<T> dq, Features<T> dk);

 private:
  const T* transposed(const T* x, int64_t rows, int64_t row_stride, int64_t width);
  template <typename U>
  U* head(const Features<U>& x, int64_t item, int64_t width) const {
    return head_of(x, item, shape_.heads, width);
  }
  int64_t map_size() const { return shape_.queries * shape_.tokens; }

  const Shape shape_;
  const RowOps<T>& ops_;
  std::unique_ptr<T[]> transposed_;
};

}  // namespace translution::kernels
