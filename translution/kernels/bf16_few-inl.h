#pragma once

// Products of few rows with a row-major bfloat16 matrix; compiled like row_ops-inl.h. The matrix is
// read from memory once, and only the result is written.

#include "translution/kernels/bf16_heads-inl.h"

namespace translution::kernels {
namespace {

// Number of column vectors that are summed at a time, by number of rows: with vdpbf16ps 24 sums
// stay in registers, otherwise 12. One or two rows cover complete rows of 192 columns.
constexpr int64_t kFewRows = 6;
constexpr int64_t kVectorsForRows[kFewRows] = {6, 6, 4, 3, 2, 2};

// Prefetch distance of W, into the L2 cache. On Zen 4, with a different 192 x 192 matrix per call,
// one row improves from 16 to 23 GB/s, and from 10 to 19 GB/s if W is transposed. Prefetching into
// the L1 cache gives 19 and 10.
constexpr int64_t kPrefetchDistance = 8192 / sizeof(Bf16);
constexpr int kIntoL2 = 2;
constexpr int64_t kLine = 64 / sizeof(Bf16);

// While the first rows of A are multiplied by the first columns, prefetches complete rows of W, so
// that memory is read in order. Always inlined, since GCC drops calls of functions that only
// prefetch.
[[gnu::always_inline]] inline void prefetch_pair_of_rows(const RowProduct& p, int64_t k) {
  const Bf16* const from = p.w + k * p.ldw + kPrefetchDistance;
  for (int64_t c = 0; c < p.ldw + p.n; c += kLine) __builtin_prefetch(from + c, 0, kIntoL2);
}

#ifdef __AVX512BF16__
constexpr int64_t kFewColumns = 32;  // of a vector of W

inline __m512i load_columns(const Bf16* w, __mmask32 mask) {
  return _mm512_maskz_loadu_epi16(mask, w);
}

inline __mmask32 first_columns(int64_t count) {
  return static_cast<__mmask32>((uint64_t{1} << count) - 1);
}

// Interleaves two rows of W in registers, within each quarter of a vector: `low` gets the first
// four of its eight columns, `high` the other four.
template <int rows, int vectors>
inline void add_pair(const __m512i (&even)[vectors], const __m512i (&odd)[vectors],
                     const __m512bh (&pairs)[rows], __m512 (&low)[rows][vectors],
                     __m512 (&high)[rows][vectors]) {
#pragma GCC unroll 6
  for (int v = 0; v < vectors; ++v) {
    const auto first = (__m512bh)_mm512_unpacklo_epi16(even[v], odd[v]);
    const auto second = (__m512bh)_mm512_unpackhi_epi16(even[v], odd[v]);
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      low[r][v] = _mm512_dpbf16_ps(low[r][v], pairs[r], first);
      high[r][v] = _mm512_dpbf16_ps(high[r][v], pairs[r], second);
    }
  }
}

inline void finish_columns(__m512 sum, bool accumulate, int64_t count, float* c) {
  if (count <= 0) return;
  const auto mask = static_cast<__mmask16>(count >= 16 ? 0xFFFF : (1u << count) - 1);
  if (accumulate) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, c));
  _mm512_mask_storeu_ps(c, mask, sum);
}

// The last vector has `columns` columns.
template <int rows, int vectors>
void few_rows_block(const RowProduct& p, const Bf16* a, const Bf16* w, int64_t columns, float* c) {
  const __mmask32 last = first_columns(columns);
  const auto load_row = [&](const Bf16* row, __m512i(&to)[vectors]) {
#pragma GCC unroll 6
    for (int v = 0; v < vectors; ++v)
      to[v] = load_columns(row + v * kFewColumns, v + 1 < vectors ? 0xFFFFFFFF : last);
  };
  const bool first = a == p.a && w == p.w;
  __m512 low[rows][vectors] = {}, high[rows][vectors] = {};
  __m512i even[vectors], odd[vectors];
  __m512bh pairs[rows];
  int64_t k = 0;
  for (; k + 2 <= p.k; k += 2) {
    const Bf16* const row = w + k * p.ldw;
    if (first) prefetch_pair_of_rows(p, k);
    load_row(row, even), load_row(row + p.ldw, odd);
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) pairs[r] = broadcast_pair(a + r * p.lda + k);
    add_pair<rows, vectors>(even, odd, pairs, low, high);
  }
  if (k < p.k) {
    load_row(w + k * p.ldw, even);
    for (int v = 0; v < vectors; ++v) odd[v] = _mm512_setzero_si512();
    for (int r = 0; r < rows; ++r) pairs[r] = broadcast_single(a + r * p.lda + k);
    add_pair<rows, vectors>(even, odd, pairs, low, high);
  }
  const __m512i to_first = _mm512_set_epi32(23, 22, 21, 20, 7, 6, 5, 4, 19, 18, 17, 16, 3, 2, 1, 0);
  const __m512i to_second =
      _mm512_set_epi32(31, 30, 29, 28, 15, 14, 13, 12, 27, 26, 25, 24, 11, 10, 9, 8);
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 6
    for (int v = 0; v < vectors; ++v) {
      const int64_t count = v + 1 < vectors ? kFewColumns : columns;
      float* const to = c + r * p.ldc + v * kFewColumns;
      finish_columns(_mm512_permutex2var_ps(low[r][v], to_first, high[r][v]), p.accumulate, count,
                     to);
      finish_columns(_mm512_permutex2var_ps(low[r][v], to_second, high[r][v]), p.accumulate,
                     count - 16, to + 16);
    }
}

// ---------------------------------------------------------------------------- transposed: W [n,k]

constexpr int64_t kDotDepth = 32;
using DotSum = __m512;

inline DotSum add_dot(DotSum sum, __m512i a, __m512i w) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)w);
}
inline __m512i load_dot(const Bf16* x) { return _mm512_loadu_si512(x); }
inline __m512i load_dot_first(const Bf16* x, int64_t count) {
  return load_columns(x, first_columns(count));
}

inline void sum_lanes(const __m512 (&sums)[16], float* out) {
  Floats::Type parts[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) parts[i] = (Floats::Type)sums[i];
  sum_sixteen(parts, out);
}
constexpr int64_t kDotSums = 16;

#else

constexpr int64_t kFewColumns = Floats::kLanes;

inline float widened_one(Bf16 x) {
  const uint32_t word = uint32_t{x.bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

template <int rows, int vectors>
void few_rows_block(const RowProduct& p, const Bf16* a, const Bf16* w, int64_t columns, float* c) {
  Floats::Type sums[rows][vectors] = {};
  const bool first = a == p.a && w == p.w;
  for (int64_t k = 0; k < p.k; ++k, w += p.ldw) {
    if (first && k % 2 == 0) prefetch_pair_of_rows(p, k);
    Floats::Type right[vectors];
    for (int v = 0; v < vectors; ++v)
      right[v] = v + 1 < vectors || columns == kFewColumns
                     ? widened(w + v * kFewColumns)
                     : widened_first(w + v * kFewColumns, columns);
    for (int r = 0; r < rows; ++r) {
      const float left = widened_one(a[r * p.lda + k]);
      for (int v = 0; v < vectors; ++v) sums[r][v] += right[v] * left;
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v)
      for (int64_t i = 0; i < (v + 1 < vectors ? kFewColumns : columns); ++i) {
        float& to = c[r * p.ldc + v * kFewColumns + i];
        to = p.accumulate ? to + sums[r][v][i] : sums[r][v][i];
      }
}

constexpr int64_t kDotDepth = Floats::kLanes;
using DotSum = Floats::Type;

inline DotSum add_dot(DotSum sum, Floats::Type a, Floats::Type w) { return sum + a * w; }
inline Floats::Type load_dot(const Bf16* x) { return widened(x); }
inline Floats::Type load_dot_first(const Bf16* x, int64_t count) { return widened_first(x, count); }

constexpr int64_t kDotSums = 8;
inline void sum_lanes(const DotSum (&sums)[kDotSums], float* out) {
  for (int i = 0; i < kDotSums; ++i) out[i] = Floats::sum(sums[i]);
}

#endif

// Calls work(begin, end) for 0 … count, in as few parts of at most `most` as possible and of about
// equal size: splitting 7 rows into 4 and 3 keeps more sums in flight than 6 and 1.
template <typename Work>
void over_parts(int64_t count, int64_t most, const Work& work) {
  const int64_t parts = (count + most - 1) / most;
  for (int64_t part = 0; part < parts; ++part)
    work(count * part / parts, count * (part + 1) / parts);
}

using FewRowsBlock = void (*)(const RowProduct&, const Bf16*, const Bf16*, int64_t, float*);

template <int rows, int vectors>
constexpr FewRowsBlock block_if_registers_suffice() {
  if constexpr (vectors <= kVectorsForRows[rows - 1])
    return few_rows_block<rows, vectors>;
  else
    return nullptr;
}

template <int rows>
FewRowsBlock few_rows_block_of(int64_t vectors) {
  constexpr FewRowsBlock blocks[] = {
      block_if_registers_suffice<rows, 1>(), block_if_registers_suffice<rows, 2>(),
      block_if_registers_suffice<rows, 3>(), block_if_registers_suffice<rows, 4>(),
      block_if_registers_suffice<rows, 5>(), block_if_registers_suffice<rows, 6>()};
  return blocks[vectors - 1];
}

// Multiplies all rows by the same columns before the next ones, so that W is read from memory once.
void few_rows(const RowProduct& p) {
  constexpr FewRowsBlock (*by_rows[kFewRows])(int64_t) = {
      few_rows_block_of<1>, few_rows_block_of<2>, few_rows_block_of<3>,
      few_rows_block_of<4>, few_rows_block_of<5>, few_rows_block_of<6>};
  const int64_t vectors = (p.n + kFewColumns - 1) / kFewColumns;
  const int64_t parts = (p.m + kFewRows - 1) / kFewRows, most_rows = (p.m + parts - 1) / parts;
  over_parts(vectors, kVectorsForRows[most_rows - 1], [&](int64_t first, int64_t end) {
    const int64_t columns = end < vectors ? kFewColumns : p.n - (end - 1) * kFewColumns;
    over_parts(p.m, kFewRows, [&](int64_t begin, int64_t stop) {
      by_rows[stop - begin - 1](end - first)(p, p.a + begin * p.lda, p.w + first * kFewColumns,
                                             columns, p.c + begin * p.ldc + first * kFewColumns);
    });
  });
}

// Computes up to `count` outputs of each row, limited by the sums that fit into registers.
template <int rows>
inline void few_dots_block(const RowProduct& p, const Bf16* a, const Bf16* w, int64_t count,
                           float* c) {
  constexpr int outs = kDotSums / rows;
  DotSum sums[kDotSums] = {};
  const Bf16* w_rows[outs];  // missing rows repeat the last one
  for (int64_t o = 0; o < outs; ++o) w_rows[o] = w + (o < count ? o : count - 1) * p.ldw;
  const auto add = [&](int64_t k, const auto& load) {
    decltype(load_dot(a)) left[rows];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) left[r] = load(a + r * p.lda + k);
#pragma GCC unroll 16
    for (int o = 0; o < outs; ++o) {
      const auto right = load(w_rows[o] + k);
      __builtin_prefetch(w_rows[o] + kDotSums * p.ldw + k, 0, kIntoL2);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r)
        sums[r * outs + o] = add_dot(sums[r * outs + o], left[r], right);
    }
  };
  int64_t k = 0;
  for (; k + kDotDepth <= p.k; k += kDotDepth) add(k, [](const Bf16* x) { return load_dot(x); });
  if (k < p.k) add(k, [&](const Bf16* x) { return load_dot_first(x, p.k - k); });
  float out[kDotSums];
  sum_lanes(sums, out);
  for (int r = 0; r < rows; ++r)
    for (int64_t o = 0; o < (count < outs ? count : outs); ++o) {
      float& to = c[r * p.ldc + o];
      to = p.accumulate ? to + out[r * outs + o] : out[r * outs + o];
    }
}

template <int rows>
void few_dots_rows(const RowProduct& p, int64_t row, int64_t first, int64_t end) {
  constexpr int64_t outs = kDotSums / rows;
  for (int64_t o = first; o < end; o += outs)
    few_dots_block<rows>(p, p.a + row * p.lda, p.w + o * p.ldw, end - o, p.c + row * p.ldc + o);
}

// Multiplies all rows by the same part of W before the next part is read.
void few_rows_transposed(const RowProduct& p) {
  for (int64_t first = 0; first < p.n; first += kDotSums) {
    const int64_t end = p.n - first < kDotSums ? p.n : first + kDotSums;
    int64_t row = 0;
    for (; row + 4 <= p.m; row += 4) few_dots_rows<4>(p, row, first, end);
    if (row + 2 <= p.m) few_dots_rows<2>(p, row, first, end), row += 2;
    if (row < p.m) few_dots_rows<1>(p, row, first, end);
  }
}

}  // namespace
}  // namespace translution::kernels
