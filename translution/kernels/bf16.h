#pragma once

#include <cstdint>
#include <memory>

#include "translution/core/cpu_info.h"

namespace translution::kernels {

/// A bfloat16 number as it is stored: the upper half of a float.
struct Bf16 {
  uint16_t bits;
};

/// Matrices are packed in tiles of 32 rows and 16 columns. A tile is [16 pairs of rows][16 columns]
/// of two neighbours in a column: an operand of the tile instructions, and of vdpbf16ps row by row.
constexpr int64_t kTileDepth = 32, kTileColumns = 16, kTileSize = kTileDepth * kTileColumns;

/// HeadOps of row_ops.h where rows are bfloat16: rows [rows,heads,width], weights [rows,heads].
struct Bf16HeadOps {
  /// out[r,h] = a[r,h,:] . b[r,h,:]
  void (*dots)(const Bf16* a, const Bf16* b, int64_t rows, int64_t heads, int64_t width,
               float* out);
  /// out[r,h,:] = weight[r,h] * x[r,h,:], rounded
  void (*scale)(const float* weight, const Bf16* x, int64_t rows, int64_t heads, int64_t width,
                Bf16* out);
  /// out[r,h,:] += weight[r,h] * x[r,h,:]
  void (*add_scaled)(const float* weight, const Bf16* x, int64_t rows, int64_t heads, int64_t width,
                     float* out);
};

/// HeadOps of row_ops.h where rows are last: x [heads*width, rows] is packed, and so a whole number
/// of tiles of rows; weights are [heads, stride]. A weight beyond `rows` counts as 0.
struct Bf16LastOps {
  /// out[h,r] = sum_c a[h,c,r] b[h,c,r]
  void (*dots)(const Bf16* a, const Bf16* b, int64_t rows, int64_t heads, int64_t width,
               int64_t stride, float* out);
  /// out[h,c,r] = weight[h,r] * x[h,c,r], rounded: packed, and as a matrix whose rows are ldout
  /// apart. That one has a whole number of tiles of rows as well.
  void (*scale)(const float* weight, const Bf16* x, int64_t rows, int64_t heads, int64_t width,
                int64_t stride, Bf16* out, Bf16* matrix, int64_t ldmatrix);
  /// out[h,c,r] += weight[h,r] * x[h,c,r], for out [heads*width, rows]
  void (*add_scaled)(const float* weight, const Bf16* x, int64_t rows, int64_t heads, int64_t width,
                     int64_t stride, float* out);
};

/// C [m,n] = A [m,k] W, added to what C holds if `accumulate`. W lies row by row, ldw apart: [k,n],
/// or [n,k] where its transpose is meant.
struct RowProduct {
  int64_t m, n, k;
  const Bf16* a;
  int64_t lda;
  const Bf16* w;
  int64_t ldw;
  float* c;
  int64_t ldc;
  bool accumulate;
};

/// What is done to rows between the products. Compiled once for every instruction set. Rounding and
/// packing give the same bits on all.
struct Bf16RowOps {
  Bf16HeadOps heads;
  Bf16LastOps rows_last;
  /// One head's part of a value gradient: dot[r*heads] = u[r,:] . x[r,:] and
  /// out[r,:] += weight[r*heads] * u[r,:], in one pass over u.
  void (*dot_and_add)(const float* u, const Bf16* x, const float* weight, int64_t rows,
                      int64_t heads, int64_t channels, float* dot, float* out);
  /// out[i] = x[i], rounded to nearest, ties to even. A denormal becomes 0 of its sign, and a NaN
  /// stays a quiet one: the rule of vcvtneps2bf16.
  void (*round)(const float* x, int64_t count, Bf16* out);
  /// out[i] = x[i], exactly.
  void (*widen)(const Bf16* x, int64_t count, float* out);
  /// Packs w [k,n], whose rows are ldw apart; out has packed_size(k, n) numbers. What a tile has
  /// beyond w is 0.
  void (*pack)(const float* w, int64_t ldw, int64_t k, int64_t n, Bf16* out);
  /// The same for rows of a larger matrix, from a tile's first on: `out` leads to their tiles.
  void (*pack_rows)(const float* w, int64_t ldw, int64_t k, int64_t n, Bf16* out,
                    int64_t column_stride);
  void (*pack_bf16)(const Bf16* w, int64_t ldw, int64_t k, int64_t n, Bf16* out);
  void (*pack_rows_bf16)(const Bf16* w, int64_t ldw, int64_t k, int64_t n, Bf16* out,
                         int64_t column_stride);
  /// Packs the transpose of w [n,k] as [k,n].
  void (*pack_transposed)(const float* w, int64_t ldw, int64_t k, int64_t n, Bf16* out);
  void (*pack_transposed_bf16)(const Bf16* w, int64_t ldw, int64_t k, int64_t n, Bf16* out);
  /// out [cols, ldout] = the transpose of x [rows, cols]. Columns from `rows` to the next multiple
  /// of kTileDepth, which ldout must hold, become 0.
  void (*transpose)(const Bf16* x, int64_t ldx, int64_t rows, int64_t cols, Bf16* out,
                    int64_t ldout);
  /// The same of floats, rounded.
  void (*round_transposed)(const float* x, int64_t ldx, int64_t rows, int64_t cols, Bf16* out,
                           int64_t ldout);
  /// out [rows, ldout] = x [rows, cols], rounded. Columns from `cols` to the next multiple of
  /// kTileDepth, which ldout must hold, become 0.
  void (*round_rows)(const float* x, int64_t ldx, int64_t rows, int64_t cols, Bf16* out,
                     int64_t ldout);
  /// out [k,n], rows ldout apart = the packed matrix. `column_stride` as in PackedMatrix.
  void (*unpack)(const Bf16* tiles, int64_t column_stride, int64_t k, int64_t n, float* out,
                 int64_t ldout);
  /// Products of few rows with a matrix that is not packed; neither m nor n is 0.
  void (*few_rows)(const RowProduct& product);
  void (*few_rows_transposed)(const RowProduct& product);
};

/// The table for an instruction set; `bf16_row_ops()` is that of `chosen_isa()`.
const Bf16RowOps& bf16_row_ops(Isa isa);
const Bf16RowOps& bf16_row_ops();

/// How many numbers a matrix [k,n] takes when it is packed.
int64_t packed_size(int64_t k, int64_t n);

/// Packs rows `first` to `first + count` of w [k,n] where they belong among the tiles of w, or of
/// its transpose. `first` is a multiple of kTileDepth.
void pack_band(const float* w, int64_t first, int64_t count, int64_t k, int64_t n, bool transposed,
               Bf16* out);
void pack_band(const Bf16* w, int64_t first, int64_t count, int64_t k, int64_t n, bool transposed,
               Bf16* out);

/// A packed matrix [k,n], or a part of one: tiles [n/16][k/32], so that all rows of 16 columns lie
/// together. The same for every instruction set.
struct PackedMatrix {
  PackedMatrix(const Bf16* packed, int64_t rows, int64_t columns);

  /// `count` rows from `first` on. Both are multiples of kTileDepth, or the rows reach to the end.
  PackedMatrix rows(int64_t first, int64_t count) const;
  /// `count` columns from `first` on, a multiple of kTileColumns.
  PackedMatrix columns(int64_t first, int64_t count) const;

  const Bf16* tiles;
  int64_t k, n;
  int64_t column_stride;  ///< from a tile to the one of the next 16 columns, in numbers
};

/// A matrix [k,n] that lies row by row, `stride` apart; or its transpose [n,k] does.
struct RowMatrix {
  const Bf16* data;
  int64_t stride;
  int64_t k, n;
  bool transposed;
};

/// Products of bfloat16 matrices on the calling thread, summed in float32. One object serves one
/// pass on the thread that made it: it holds the scratch memory, and with Isa::amx the thread's
/// tiles are configured while it lives.
///
/// Isa::amx multiplies tiles, Isa::avx512_bf16 uses vdpbf16ps, and every other set widens the
/// operands and calls gemm<float>, whose rule about signals then holds. Except there, a row of the
/// result has the same bits whichever rows are computed with it. Sums over more than kMostDepth
/// numbers are made in blocks of that many, in order.
class Bf16Products {
 public:
  static constexpr int64_t kMostDepth = 768;

  explicit Bf16Products(Isa isa = chosen_isa());
  ~Bf16Products();
  Bf16Products(const Bf16Products&) = delete;
  Bf16Products& operator=(const Bf16Products&) = delete;

  /// How many rows to multiply at a time if the result is consumed at once, from a buffer that
  /// stays in the cache.
  int64_t rows_at_once() const;

  /// C [m, b.n] = A [m, b.k] B, added to what C holds if `accumulate`.
  void multiply(int64_t m, const Bf16* a, int64_t lda, const PackedMatrix& b, bool accumulate,
                float* c, int64_t ldc);
  /// Are only whole tiles multiplied? Then operands with zeros up to a multiple of kTileDepth save
  /// a copy.
  bool whole_tiles() const { return isa_ == Isa::amx; }
  /// The same rounded, [m, b.n] with rows b.n apart: written as it leaves the registers.
  void multiply_rounded(int64_t m, const Bf16* a, int64_t lda, const PackedMatrix& b, Bf16* c);

  /// The same rounded and packed, as the right-hand side of another product.
  void multiply_packed(int64_t m, const Bf16* a, int64_t lda, const PackedMatrix& b, Bf16* c);

  /// The same for B that is not packed, for products that are made once. Those of up to few_rows()
  /// rows are made from where it lies: one row takes as long as it takes to read B. Otherwise B is
  /// packed on the way, 64 columns at a time. The bits of a row then depend on which of both it
  /// was.
  int64_t few_rows() const;
  void multiply(int64_t m, const Bf16* a, int64_t lda, const RowMatrix& b, bool accumulate,
                float* c, int64_t ldc);

  /// For each head, C_h [m,n] = A_h [m,D] W_h^T, where W [n,heads*D] lies row by row, ldw apart,
  /// and has the heads beside each other, as A [m,heads*D] and C [m,heads*n] have them. W is read
  /// in order, all heads at a time.
  void multiply_heads(int64_t m, int64_t heads, int64_t n, int64_t D, const Bf16* a, int64_t lda,
                      const Bf16* w, int64_t ldw, float* c, int64_t ldc);

  /// The gradient of a weight: dW [k,n] = X^T dY from X [m,k] and dY [m,n], added to what dW holds
  /// if `accumulate`.
  void weight_gradient(int64_t m, int64_t k, int64_t n, const Bf16* x, int64_t ldx, const Bf16* dy,
                       int64_t lddy, bool accumulate, float* dw, int64_t lddw);

 private:
  class Machine;
  const Isa isa_;
  const std::unique_ptr<Machine> machine_;
  int64_t flops_ = 0;
};

}  // namespace translution::kernels
