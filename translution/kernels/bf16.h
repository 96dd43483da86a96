#pragma once

#include <cstdint>
#include <memory>

#include "translution/core/cpu_info.h"

namespace translution::kernels {

/// A stored bfloat16 number: the upper half of a float.
struct Bf16 {
  uint16_t bits;
};

/// Matrices are packed in tiles of 32 rows and 16 columns. A tile is [16 row pairs][16 columns][2],
/// the last index being the row within its pair. A tile is an operand of the AMX instructions, and
/// each of its 16 rows is an operand of vdpbf16ps.
constexpr int64_t kTileDepth = 32, kTileColumns = 16, kTileSize = kTileDepth * kTileColumns;

/// HeadOps of row_ops.h for bfloat16 rows: rows [rows,heads,width], weights [rows,heads].
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

/// HeadOps of row_ops.h with rows as the last dimension. x [heads*width, rows] is packed, so `rows`
/// is padded to full tiles; weights are [heads, stride]. Weights beyond `rows` are treated as 0.
struct Bf16LastOps {
  /// out[h,r] = sum_c a[h,c,r] b[h,c,r]
  void (*dots)(const Bf16* a, const Bf16* b, int64_t rows, int64_t heads, int64_t width,
               int64_t stride, float* out);
  /// out[h,c,r] = weight[h,r] * x[h,c,r], rounded: written packed to `out`, and to `matrix` with
  /// row stride ldmatrix. The rows of `matrix` are padded to full tiles, too.
  void (*scale)(const float* weight, const Bf16* x, int64_t rows, int64_t heads, int64_t width,
                int64_t stride, Bf16* out, Bf16* matrix, int64_t ldmatrix);
  /// out[h,c,r] += weight[h,r] * x[h,c,r], for out [heads*width, rows]
  void (*add_scaled)(const float* weight, const Bf16* x, int64_t rows, int64_t heads, int64_t width,
                     int64_t stride, float* out);
};

/// C [m,n] = A [m,k] W, or C += A W if `accumulate`. W is row-major with row stride ldw: [k,n], or
/// [n,k] if it is transposed.
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

/// Row operations between the products. Compiled once for each instruction set. Rounding and
/// packing are bitwise identical on all of them.
struct Bf16RowOps {
  Bf16HeadOps heads;
  Bf16LastOps rows_last;
  /// One head's share of a value gradient: dot[r*heads] = u[r,:] . x[r,:] and
  /// out[r,:] += weight[r*heads] * u[r,:], in one pass over u.
  void (*dot_and_add)(const float* u, const Bf16* x, const float* weight, int64_t rows,
                      int64_t heads, int64_t channels, float* dot, float* out);
  /// out[i] = x[i], rounded to nearest, ties to even. Denormals become zeros of the same sign, and
  /// NaNs become quiet NaNs, as with vcvtneps2bf16.
  void (*round)(const float* x, int64_t count, Bf16* out);
  /// out[i] = x[i], exactly.
  void (*widen)(const Bf16* x, int64_t count, float* out);
  /// Packs w [k,n] with row stride ldw; out has packed_size(k, n) elements. Tiles are padded with
  /// zeros.
  void (*pack)(const float* w, int64_t ldw, int64_t k, int64_t n, Bf16* out);
  /// The same for rows of a larger matrix that begin at a tile boundary: `out` points to their
  /// tiles.
  void (*pack_rows)(const float* w, int64_t ldw, int64_t k, int64_t n, Bf16* out,
                    int64_t column_stride);
  void (*pack_bf16)(const Bf16* w, int64_t ldw, int64_t k, int64_t n, Bf16* out);
  void (*pack_rows_bf16)(const Bf16* w, int64_t ldw, int64_t k, int64_t n, Bf16* out,
                         int64_t column_stride);
  /// Packs the transpose of w [n,k] as [k,n].
  void (*pack_transposed)(const float* w, int64_t ldw, int64_t k, int64_t n, Bf16* out);
  void (*pack_transposed_bf16)(const Bf16* w, int64_t ldw, int64_t k, int64_t n, Bf16* out);
  /// out [cols, ldout] = x^T, for x [rows, cols]. Columns from `rows` to the next multiple of
  /// kTileDepth are set to 0; ldout must be large enough.
  void (*transpose)(const Bf16* x, int64_t ldx, int64_t rows, int64_t cols, Bf16* out,
                    int64_t ldout);
  /// The same for float x, rounded.
  void (*round_transposed)(const float* x, int64_t ldx, int64_t rows, int64_t cols, Bf16* out,
                           int64_t ldout);
  /// out [rows, ldout] = x [rows, cols], rounded. Columns from `cols` to the next multiple of
  /// kTileDepth are set to 0; ldout must be large enough.
  void (*round_rows)(const float* x, int64_t ldx, int64_t rows, int64_t cols, Bf16* out,
                     int64_t ldout);
  /// Unpacks to out [k,n] with row stride ldout. `column_stride` as in PackedMatrix.
  void (*unpack)(const Bf16* tiles, int64_t column_stride, int64_t k, int64_t n, float* out,
                 int64_t ldout);
  /// Products of few rows with an unpacked matrix; m and n must not be 0.
  void (*few_rows)(const RowProduct& product);
  void (*few_rows_transposed)(const RowProduct& product);
};

/// The operations for an instruction set; without an argument, for `chosen_isa()`.
const Bf16RowOps& bf16_row_ops(Isa isa);
const Bf16RowOps& bf16_row_ops();

/// Number of elements of a packed matrix [k,n].
int64_t packed_size(int64_t k, int64_t n);

/// Packs rows [first, first + count) of w [k,n] into their tiles of packed w, or of packed w^T.
/// `first` is a multiple of kTileDepth; `out` points to the complete packed matrix.
void pack_band(const float* w, int64_t first, int64_t count, int64_t k, int64_t n, bool transposed,
               Bf16* out);
void pack_band(const Bf16* w, int64_t first, int64_t count, int64_t k, int64_t n, bool transposed,
               Bf16* out);

/// A packed matrix [k,n], or a part of one: tiles [n/16][k/32], so all rows of 16 columns are
/// contiguous. The layout is the same for every instruction set.
struct PackedMatrix {
  PackedMatrix(const Bf16* packed, int64_t rows, int64_t columns);

  /// Rows [first, first + count). Both arguments are multiples of kTileDepth, unless the rows
  /// extend to the end.
  PackedMatrix rows(int64_t first, int64_t count) const;
  /// Columns [first, first + count). `first` is a multiple of kTileColumns.
  PackedMatrix columns(int64_t first, int64_t count) const;

  const Bf16* tiles;
  int64_t k, n;
  int64_t column_stride;  ///< elements from a tile to the tile of the next 16 columns
};

/// A row-major matrix [k,n] with row stride `stride`; stored as [n,k] if `transposed`.
struct RowMatrix {
  const Bf16* data;
  int64_t stride;
  int64_t k, n;
  bool transposed;
};

/// Products of bfloat16 matrices on the calling thread, accumulated in float32. Use an object only
/// on the thread that created it, for one pass: it owns scratch memory and, with Isa::amx, the
/// thread's tile configuration during its lifetime.
///
/// Isa::amx multiplies tiles, Isa::avx512_bf16 uses vdpbf16ps, and all other sets widen the
/// operands and call gemm<float>, whose rule about signals then applies. With the first two, the
/// bits of a result row do not depend on which other rows are computed with it. Sums over more than
/// kMostDepth products are computed in blocks of kMostDepth, in order.
class Bf16Products {
 public:
  static constexpr int64_t kMostDepth = 768;

  explicit Bf16Products(Isa isa = chosen_isa());
  ~Bf16Products();
  Bf16Products(const Bf16Products&) = delete;
  Bf16Products& operator=(const Bf16Products&) = delete;

  /// Rows to multiply at a time if the result is consumed immediately, from a buffer that stays in
  /// the cache.
  int64_t rows_at_once() const;

  /// C [m, b.n] = A [m, b.k] B, or C += A B if `accumulate`.
  void multiply(int64_t m, const Bf16* a, int64_t lda, const PackedMatrix& b, bool accumulate,
                float* c, int64_t ldc);
  /// Whether products work on full tiles only. If so, operands that are zero-padded to a multiple
  /// of kTileDepth avoid a copy.
  bool needs_full_tiles() const { return isa_ == Isa::amx; }
  /// The product rounded to bfloat16, [m, b.n] with row stride b.n. Rounded in registers.
  void multiply_rounded(int64_t m, const Bf16* a, int64_t lda, const PackedMatrix& b, Bf16* c);

  /// The product rounded and packed, as the right operand of another product.
  void multiply_packed(int64_t m, const Bf16* a, int64_t lda, const PackedMatrix& b, Bf16* c);

  /// The product with an unpacked B, for matrices that are used once. Up to few_rows() rows, B is
  /// read directly: one row takes as long as reading B. For more rows, B is packed on the fly, 64
  /// columns at a time. The two paths may give different bits for the same row.
  int64_t few_rows() const;
  void multiply(int64_t m, const Bf16* a, int64_t lda, const RowMatrix& b, bool accumulate,
                float* c, int64_t ldc);

  /// For each head, C_h [m,n] = A_h [m,D] W_h^T. W [n,heads*D] is row-major with row stride ldw;
  /// heads are adjacent in the columns of W, A [m,heads*D] and C [m,heads*n]. W is read in order,
  /// all heads at a time.
  void multiply_heads(int64_t m, int64_t heads, int64_t n, int64_t D, const Bf16* a, int64_t lda,
                      const Bf16* w, int64_t ldw, float* c, int64_t ldc);

  /// The gradient of a weight: dW [k,n] = X^T dY from X [m,k] and dY [m,n], or dW += X^T dY if
  /// `accumulate`.
  void weight_gradient(int64_t m, int64_t k, int64_t n, const Bf16* x, int64_t ldx, const Bf16* dy,
                       int64_t lddy, bool accumulate, float* dw, int64_t lddw);

 private:
  class Backend;
  const Isa isa_;
  const std::unique_ptr<Backend> backend_;
  int64_t flops_ = 0;
};

}  // namespace translution::kernels
