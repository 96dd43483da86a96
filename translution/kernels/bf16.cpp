#include "translution/kernels/bf16.h"

#include <algorithm>

#include "translution/kernels/gemm.h"
#include "translution/kernels/isa.h"
#include "translution/kernels/scratch.h"

namespace translution::kernels {
namespace {

// Rows of A that are multiplied by all of B before the next rows: 256 rows of kMostDepth elements
// are 384 KB, which stay in an L2 cache.
constexpr int64_t kMaxRows = 256;

// Columns of B to widen at a time.
constexpr int64_t kMaxWidened = 512;

// Columns to pack at a time: with 192 rows they stay in the L1 cache.
constexpr int64_t kPackedColumns = 64;

int64_t rounded_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

// Calls work(begin, count) for 0 … total, `most` at a time.
template <typename Work>
void in_blocks(int64_t total, int64_t most, const Work& work) {
  for (int64_t begin = 0; begin < total; begin += most) work(begin, std::min(most, total - begin));
}

void clear(int64_t rows, int64_t columns, float* c, int64_t ldc) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(c + r * ldc, columns, 0.0f);
}

template <typename Source, typename PackRows, typename PackTransposed>
void pack_band_with(PackRows pack_rows, PackTransposed pack_transposed, const Source* w,
                    int64_t first, int64_t count, int64_t k, int64_t n, bool transposed,
                    Bf16* out) {
  const Source* const rows = w + first * n;
  if (transposed)
    pack_transposed(rows, n, n, count, out + first * rounded_up(n, kTileDepth));
  else
    pack_rows(rows, n, count, n, out + first * kTileColumns,
              rounded_up(k, kTileDepth) * kTileColumns);
}

#ifdef TRANSLUTION_X86
// Objects on one thread may overlap; the last one to be destroyed releases the tiles.
thread_local int tile_users = 0;

void use_tiles() {
  if (tile_users++ == 0) configure_tiles();
}

void leave_tiles() {
  if (--tile_users == 0) release_tiles();
}
#else
void use_tiles() {}
void leave_tiles() {}
#endif

}  // namespace

int64_t packed_size(int64_t k, int64_t n) {
  return rounded_up(k, kTileDepth) * rounded_up(n, kTileColumns);
}

void pack_band(const float* w, int64_t first, int64_t count, int64_t k, int64_t n, bool transposed,
               Bf16* out) {
  const auto& ops = bf16_row_ops();
  pack_band_with(ops.pack_rows, ops.pack_transposed, w, first, count, k, n, transposed, out);
}

void pack_band(const Bf16* w, int64_t first, int64_t count, int64_t k, int64_t n, bool transposed,
               Bf16* out) {
  const auto& ops = bf16_row_ops();
  pack_band_with(ops.pack_rows_bf16, ops.pack_transposed_bf16, w, first, count, k, n, transposed,
                 out);
}

int64_t tile_scratch_size(int64_t m, int64_t k) {
  constexpr int64_t kTileRows = 16;
  if (k % kTileDepth != 0) return rounded_up(m, kTileRows) * rounded_up(k, kTileDepth);
  return m % kTileRows == 0 ? 0 : kTileRows * k;
}

PackedMatrix::PackedMatrix(const Bf16* packed, int64_t rows, int64_t columns)
    : tiles(packed),
      k(rows),
      n(columns),
      column_stride(rounded_up(rows, kTileDepth) * kTileColumns) {}

PackedMatrix PackedMatrix::rows(int64_t first, int64_t count) const {
  PackedMatrix part = *this;
  part.tiles += first * kTileColumns;
  part.k = count;
  return part;
}

PackedMatrix PackedMatrix::columns(int64_t first, int64_t count) const {
  PackedMatrix part = *this;
  part.tiles += first / kTileColumns * column_stride;
  part.n = count;
  return part;
}

// The three implementations of a product, with their scratch memory.
class Bf16Products::Backend {
 public:
  explicit Backend(Isa isa) : isa_(isa), ops_(bf16_row_ops(isa)) {}

  bool widens() const { return isa_ < Isa::avx512_bf16; }

  void multiply(const Bf16Product& p) {
#ifdef TRANSLUTION_X86
    if (isa_ == Isa::amx)
      return multiply_amx(p, tails_.with(tile_scratch_size(p.m, p.k)), ops_.round);
    if (isa_ == Isa::avx512_bf16) return multiply_avx512_bf16(p);
#endif
    multiply_widened(p);
  }

  // Rounds in registers if a sum is complete after one block, otherwise from a float32 buffer.
  void multiply_rounded(int64_t m, const Bf16* a, int64_t lda, const PackedMatrix& b, Bf16* c) {
    if (!widens() && b.k <= kMostDepth)
      return multiply({m, b.n, b.k, a, lda, b.tiles, b.column_stride, nullptr, b.n, false, c});
    float* const sums = sums_.with(m * b.n);
    in_blocks(b.k, kMostDepth, [&](int64_t first, int64_t depth) {
      const PackedMatrix part = b.rows(first, depth);
      multiply(
          {m, b.n, depth, a + first, lda, part.tiles, part.column_stride, sums, b.n, first > 0});
    });
    ops_.round(sums, m * b.n, c);
  }

  void multiply_packed(int64_t m, const Bf16* a, int64_t lda, const PackedMatrix& b, Bf16* c) {
    float* const sums = sums_.with(m * b.n);
    multiply({m, b.n, b.k, a, lda, b.tiles, b.column_stride, sums, b.n, false});
    ops_.pack(sums, b.n, m, b.n, c);
  }

  const Bf16RowOps& ops() const { return ops_; }

  // Packs `columns` columns of b from `first` on.
  PackedMatrix packed(const RowMatrix& b, int64_t first, int64_t columns) {
    Bf16* const out = packed_.with(packed_size(b.k, columns));
    const auto pack = b.transposed ? ops_.pack_transposed_bf16 : ops_.pack_bf16;
    pack(b.data + first * (b.transposed ? b.stride : 1), b.stride, b.k, columns, out);
    return {out, b.k, columns};
  }

  // dW = X^T dY as a product of an explicitly transposed X and a packed dY.
  void gradient_from_tiles(int64_t m, int64_t k, int64_t n, const Bf16* x, int64_t ldx,
                           const Bf16* dy, int64_t lddy, bool accumulate, float* dw, int64_t lddw) {
    const int64_t padded = rounded_up(m, kTileDepth);
    // Both operands are zero-padded beyond m, and full tiles of A need no copy.
    const int64_t depth = isa_ == Isa::amx ? padded : m;
    Bf16* const packed = packed_.with(packed_size(m, n));
    ops_.pack_bf16(dy, lddy, m, n, packed);
    const PackedMatrix right(packed, m, n);
    in_blocks(k, kMaxRows, [&](int64_t first, int64_t count) {
      Bf16* const transposed = transposed_.with(count * padded);
      ops_.transpose(x + first, ldx, m, count, transposed, padded);
      multiply({count, n, depth, transposed, padded, right.tiles, right.column_stride,
                dw + first * lddw, lddw, accumulate});
    });
  }

  void gradient_widened(int64_t m, int64_t k, int64_t n, const Bf16* x, int64_t ldx, const Bf16* dy,
                        int64_t lddy, bool accumulate, float* dw, int64_t lddw) {
    const float* const left = widened(x, ldx, m, k, left_);
    const float* const right = widened(dy, lddy, m, n, right_);
    gemm<float>(true, false, k, n, m, left, k, right, n, accumulate ? 1 : 0, dw, lddw);
  }

 private:
  const float* widened(const Bf16* x, int64_t ldx, int64_t rows, int64_t columns,
                       Scratch<float>& scratch) {
    float* const out = scratch.with(rows * columns);
    for (int64_t r = 0; r < rows; ++r) ops_.widen(x + r * ldx, columns, out + r * columns);
    return out;
  }

  void multiply_widened(const Bf16Product& p) {
    const float* const left = widened(p.a, p.lda, p.m, p.k, left_);
    in_blocks(p.n, kMaxWidened, [&](int64_t first, int64_t count) {
      float* const right = right_.with(p.k * count);
      ops_.unpack(p.b + first / kTileColumns * p.column_stride, p.column_stride, p.k, count, right,
                  count);
      gemm<float>(false, false, p.m, count, p.k, left, p.k, right, count, p.accumulate ? 1 : 0,
                  p.c + first, p.ldc);
    });
  }

  const Isa isa_;
  const Bf16RowOps& ops_;
  Scratch<Bf16> tails_, transposed_, packed_;
  Scratch<float> left_, right_, sums_;
};

Bf16Products::Bf16Products(Isa isa) : isa_(isa), backend_(std::make_unique<Backend>(isa)) {
  if (isa_ == Isa::amx) use_tiles();
}

Bf16Products::~Bf16Products() {
  if (isa_ == Isa::amx) leave_tiles();
  count_gemm_flops(flops_);
}

// 64 rows of 192 columns are 48 KB. A backend that widens unpacks B for each call, which 256 rows
// amortise.
int64_t Bf16Products::rows_at_once() const { return backend_->widens() ? kMaxRows : 64; }

void Bf16Products::multiply(int64_t m, const Bf16* a, int64_t lda, const PackedMatrix& b,
                            bool accumulate, float* c, int64_t ldc) {
  if (b.n == 0) return;
  if (b.k == 0 && !accumulate) clear(m, b.n, c, ldc);
  if (!backend_->widens()) flops_ += 2 * m * b.n * b.k;
  in_blocks(m, kMaxRows, [&](int64_t row, int64_t rows) {
    in_blocks(b.k, kMostDepth, [&](int64_t first, int64_t depth) {
      const PackedMatrix part = b.rows(first, depth);
      backend_->multiply({rows, b.n, depth, a + row * lda + first, lda, part.tiles,
                          part.column_stride, c + row * ldc, ldc, accumulate || first > 0});
    });
  });
}

void Bf16Products::multiply_rounded(int64_t m, const Bf16* a, int64_t lda, const PackedMatrix& b,
                                    Bf16* c) {
  if (b.n == 0) return;
  if (!backend_->widens()) flops_ += 2 * m * b.n * b.k;
  in_blocks(m, kMaxRows, [&](int64_t row, int64_t rows) {
    backend_->multiply_rounded(rows, a + row * lda, lda, b, c + row * b.n);
  });
}

void Bf16Products::multiply_packed(int64_t m, const Bf16* a, int64_t lda, const PackedMatrix& b,
                                   Bf16* c) {
  if (!backend_->widens()) flops_ += 2 * m * b.n * b.k;
  backend_->multiply_packed(m, a, lda, b, c);
}

// Measured with K = N = 192 and a different matrix from memory per call. With vdpbf16ps, 8, 32 and
// 64 rows take 6.1, 15 and 25 us if B is read directly, and 9.8, 18 and 28 us if it is packed on
// the fly; transposed, 5.5, 18 and 35 us instead of 12, 20 and 31 us. Without vdpbf16ps, 8, 16 and
// 24 rows take 16, 31 and 53 us instead of 31, 37 and 43 us. Tiles have not been measured.
int64_t Bf16Products::few_rows() const { return isa_ == Isa::avx512_bf16 ? 48 : 16; }

void Bf16Products::multiply(int64_t m, const Bf16* a, int64_t lda, const RowMatrix& b,
                            bool accumulate, float* c, int64_t ldc) {
  if (m == 0 || b.n == 0) return;
  if (m > few_rows()) {
    in_blocks(b.n, kPackedColumns, [&](int64_t first, int64_t columns) {
      multiply(m, a, lda, backend_->packed(b, first, columns), accumulate, c + first, ldc);
    });
    return;
  }
  if (b.k == 0 && !accumulate) clear(m, b.n, c, ldc);
  flops_ += 2 * m * b.n * b.k;
  const auto& ops = backend_->ops();
  const auto product = b.transposed ? ops.few_rows_transposed : ops.few_rows;
  in_blocks(b.k, kMostDepth, [&](int64_t first, int64_t depth) {
    product({m, b.n, depth, a + first, lda, b.data + first * (b.transposed ? 1 : b.stride),
             b.stride, c, ldc, accumulate || first > 0});
  });
}

// The loop over heads is inside the loop over outputs. Measured with a different 192 x 192 matrix
// per call and 3 heads: 1, 8 and 32 rows take 3.5, 7.9 and 30 us if W is read directly, 9.6, 11 and
// 20 us if it is packed on the fly, and 7.4, 13 and 34 us head by head.
void Bf16Products::multiply_heads(int64_t m, int64_t heads, int64_t n, int64_t D, const Bf16* a,
                                  int64_t lda, const Bf16* w, int64_t ldw, float* c, int64_t ldc) {
  constexpr int64_t kFewRowsOfHeads = 12;
  if (m > kFewRowsOfHeads && D % kTileDepth == 0) {
    in_blocks(n, kPackedColumns, [&](int64_t first, int64_t count) {
      const PackedMatrix packed =
          backend_->packed({w + first * ldw, ldw, heads * D, count, true}, 0, count);
      for (int64_t h = 0; h < heads; ++h)
        multiply(m, a + h * D, lda, packed.rows(h * D, D), false, c + h * n + first, ldc);
    });
    return;
  }
  in_blocks(n, kTileColumns, [&](int64_t first, int64_t count) {
    for (int64_t h = 0; h < heads; ++h)
      multiply(m, a + h * D, lda, RowMatrix{w + first * ldw + h * D, ldw, D, count, true}, false,
               c + h * n + first, ldc);
  });
}

void Bf16Products::weight_gradient(int64_t m, int64_t k, int64_t n, const Bf16* x, int64_t ldx,
                                   const Bf16* dy, int64_t lddy, bool accumulate, float* dw,
                                   int64_t lddw) {
  if (k == 0 || n == 0) return;
  if (m == 0 && !accumulate) clear(k, n, dw, lddw);
  if (!backend_->widens()) flops_ += 2 * m * n * k;
  const auto gradient =
      backend_->widens() ? &Backend::gradient_widened : &Backend::gradient_from_tiles;
  in_blocks(m, kMostDepth, [&](int64_t first, int64_t rows) {
    (backend_.get()->*gradient)(rows, k, n, x + first * ldx, ldx, dy + first * lddy, lddy,
                                accumulate || first > 0, dw, lddw);
  });
}

}  // namespace translution::kernels
