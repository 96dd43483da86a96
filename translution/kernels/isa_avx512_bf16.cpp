// Products of bfloat16 with vdpbf16ps, which adds the products of two adjacent elements to each
// float.

#define TRANSLUTION_VECTOR_BYTES 64
#include <immintrin.h>

#include <cstring>

#include "translution/kernels/bf16_rows-inl.h"
#include "translution/kernels/isa.h"

namespace translution::kernels {
namespace {

// 24 registers hold sums of 16 columns, 4 hold B and one holds A. On Zen 4 with 448 rows and K = N
// = 192, blocks of 6 x 4 reach 220 GFLOP/s, 8 x 3 220, 14 x 2 218 and 12 x 2 201; 4 vectors are a
// head of 64 columns. Broadcasting A in the operand of vdpbf16ps saves a register but halves the
// speed (7 x 4: 97).
constexpr int64_t kMaxRows = 6, kMaxColumns = 4;

inline __m512bh load_tile_row(const Bf16* b) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(b));
}

template <int rows, int columns, typename Broadcast>
inline void add_products(const Bf16* a, int64_t lda, const Bf16* b, int64_t column_stride,
                         const Broadcast& broadcast, __m512 (&sums)[rows][columns]) {
  __m512bh right[columns];
#pragma GCC unroll 4
  for (int j = 0; j < columns; ++j) right[j] = load_tile_row(b + j * column_stride);
#pragma GCC unroll 6
  for (int i = 0; i < rows; ++i) {
    const __m512bh left = broadcast(a + i * lda);
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], left, right[j]);
  }
}

// Writes the columns of C that `mask` selects. On Zen 4 a masked store is much slower than an
// unmasked one.
inline void finish(__m512 sum, bool accumulate, __mmask16 mask, float* c) {
  if (mask == 0xFFFF)
    _mm512_storeu_ps(c, accumulate ? _mm512_add_ps(sum, _mm512_loadu_ps(c)) : sum);
  else
    _mm512_mask_storeu_ps(c, mask,
                          accumulate ? _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, c)) : sum);
}

inline void finish_rounded(__m512 sum, __mmask16 mask, Bf16* c) {
  const auto numbers = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sum));
  if (mask == 0xFFFF)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(c), numbers);
  else
    _mm256_mask_storeu_epi16(c, mask, numbers);
}

// A block of C: `rows` rows and 16 * `columns` columns; `last` masks the last 16 columns.
template <int rows, int columns>
void multiply_block(const Bf16Product& p, const Bf16* a, const Bf16* b, int64_t at,
                    __mmask16 last) {
  // Prefetches the next rows of C: the gradient of a different 192 x 192 matrix per call from 64
  // rows improves from 115 to 160 GFLOP/s. Prefetching the next columns of B gains nothing.
  if (!p.rounded)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        __builtin_prefetch(p.c + at + (rows + i) * p.ldc + j * kTileColumns, 1);
  __m512 sums[rows][columns] = {};
  const int64_t even = p.k / 2 * 2;
  for (int64_t k = 0; k < even; k += 2)
    add_products(a + k, p.lda, b + k * kTileColumns, p.column_stride, broadcast_pair, sums);
  if (even < p.k)
    add_products(a + even, p.lda, b + even * kTileColumns, p.column_stride, broadcast_single, sums);
#pragma GCC unroll 6
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) {
      const __mmask16 mask = j + 1 < columns ? 0xFFFF : last;
      const int64_t index = at + i * p.ldc + j * kTileColumns;
      if (p.rounded)
        finish_rounded(sums[i][j], mask, p.rounded + index);
      else
        finish(sums[i][j], p.accumulate, mask, p.c + index);
    }
}

using Block = void (*)(const Bf16Product&, const Bf16*, const Bf16*, int64_t, __mmask16);

template <int rows>
Block block_of(int64_t columns) {
  constexpr Block blocks[kMaxColumns] = {multiply_block<rows, 1>, multiply_block<rows, 2>,
                                         multiply_block<rows, 3>, multiply_block<rows, 4>};
  return blocks[columns - 1];
}

Block block_of(int64_t rows, int64_t columns) {
  constexpr Block (*by_rows[kMaxRows])(int64_t) = {block_of<1>, block_of<2>, block_of<3>,
                                                   block_of<4>, block_of<5>, block_of<6>};
  return by_rows[rows - 1](columns);
}

}  // namespace

const Bf16RowOps& bf16_row_ops_avx512_bf16() { return kBf16Ops; }

// Multiplies all rows by the same columns of B before the next ones, so that B is read from memory
// once, as fast as it is needed.
void multiply_avx512_bf16(const Bf16Product& p) {
  const int64_t tiles = (p.n + kTileColumns - 1) / kTileColumns;
  over_parts(tiles, kMaxColumns, [&](int64_t first, int64_t end) {
    const int64_t width = end < tiles ? kTileColumns : p.n - (end - 1) * kTileColumns;
    const auto last = static_cast<__mmask16>((1u << width) - 1);
    over_parts(p.m, kMaxRows, [&](int64_t begin, int64_t stop) {
      block_of(stop - begin, end - first)(p, p.a + begin * p.lda, p.b + first * p.column_stride,
                                          begin * p.ldc + first * kTileColumns, last);
    });
  });
}

}  // namespace translution::kernels
