#pragma once

#include <cstdint>
#include <memory>

#include "translution/kernels/content.h"
#include "translution/kernels/row_ops.h"

namespace translution::kernels {

/// Attention with a vector per slot: r_ij is row slot(i, j) of a table [M,heads*width]. Maps are
/// [B,heads,Nq,N]. For each query, the vectors are gathered once for all samples, so each pass is
/// one product per head, [B,width] with [N,width] or [B,N] with [N,width], without copies of the
/// other operands. Runs on the calling thread; use one object per thread.
template <typename T>
class VectorPasses {
 public:
  struct Shape {
    int64_t batch, heads, queries, tokens, width;  ///< width of one head
  };
  /// `slots` [Nq*N]: the slot of each pair; below 0 the vector is zero.
  VectorPasses(const Shape& shape, const int32_t* slots);

  /// maps[b,h,i,j] += x[b,i] . r_ij per head, for one query i.
  void dots(int64_t i, const T* table, Features<const T> x, T* maps);
  /// out[b,i] = sum_j maps[b,h,i,j] r_ij per head, for one query i.
  void sums(int64_t i, const T* table, const T* maps, Features<T> out);
  /// dtable[slot(i,j),c] += sum_b maps[b,h,i,j] x[b,i,c] for all queries and the channels
  /// [begin, end) of head h: the gradient of the table in either pass.
  void add_table_gradient(int64_t h, int64_t begin, int64_t end, const T* maps, Features<const T> x,
                          T* dtable);

 private:
  int64_t table_width() const { return shape_.heads * shape_.width; }
  /// Distance between two samples in a map.
  int64_t sample_stride() const { return shape_.heads * shape_.queries * shape_.tokens; }
  template <typename U>
  U* map_rows(U* maps, int64_t h, int64_t i) const {
    return maps + (h * shape_.queries + i) * shape_.tokens;
  }
  const T* gather(int64_t i, const T* table);

  const Shape shape_;
  const int32_t* const slots_;
  const RowOps<T>& ops_;
  std::unique_ptr<T[]> vectors_, transposed_;  // [N,heads*width], [width,N]
};

}  // namespace translution::kernels
