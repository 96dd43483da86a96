// Rounding to bfloat16 and packing, written once on GCC vectors and compiled under each instruction
// set's flags by isa_*.cpp, as row_ops-inl.h is.

#include "translution/kernels/bf16_few-inl.h"
#include "translution/kernels/bf16_heads-inl.h"
#include "translution/kernels/bf16_last-inl.h"

namespace translution::kernels {
namespace {

constexpr int64_t kPairs = kTileDepth / 2;  // rows of a packed tile
static_assert(kTileColumns % Words::kLanes == 0 && kPairs == kTileColumns);

void round_row(const float* x, int64_t count, Bf16* out) {
  int64_t i = 0;
  for (; i + Words::kLanes <= count; i += Words::kLanes)
    round_vector(Vector<float>::load(x + i), out + i);
  if (i < count) round_first(load_first_floats(x + i, count - i), count - i, out + i);
}

void widen_row(const Bf16* x, int64_t count, float* out) {
  int64_t i = 0;
  for (; i + Words::kLanes <= count; i += Words::kLanes) Words::store(out + i, load_words(x + i));
  for (; i < count; ++i) {
    const uint32_t word = uint32_t{x[i].bits} << 16;
    std::memcpy(out + i, &word, sizeof word);
  }
}

// One row of a tile: for each column, the element of the `even` row in the lower half of a word and
// that of the `odd` row in the upper half.
template <typename Source>
void interleave_rows(const Source* even, const Source* odd, Bf16* out) {
  for (int64_t c = 0; c < kTileColumns; c += Words::kLanes)
    Words::store(out + 2 * c, load_words(even + c) >> 16 | load_words(odd + c));
}

#ifdef __AVX512BF16__
inline void interleave_rows(const float* even, const float* odd, Bf16* out) {
  const auto halves =
      reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(_mm512_loadu_ps(odd), _mm512_loadu_ps(even)));
  const __m512i pairs = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  _mm512_storeu_si512(out, _mm512_permutexvar_epi16(pairs, halves));
}
#endif

// The same at an edge: missing columns and a missing odd row are zeros.
template <typename Source>
void interleave_edge(const Source* even, const Source* odd, int64_t columns, Bf16* out) {
  for (int64_t c = 0; c < kTileColumns; c += Words::kLanes) {
    const int64_t rest = columns > c ? columns - c : 0;
    const int64_t count = rest < Words::kLanes ? rest : Words::kLanes;
    const auto upper = odd == nullptr ? Words::Type{} : load_first(odd + c, count);
    Words::store(out + 2 * c, load_first(even + c, count) >> 16 | upper);
  }
}

// Reads row by row, since the matrix may come from memory; writes complete cache lines.
template <typename Source>
void pack_rows_strided(const Source* w, int64_t ldw, int64_t k, int64_t n, Bf16* out,
                       int64_t column_stride) {
  const int64_t padded = (k + kTileDepth - 1) / kTileDepth * kTileDepth;
  for (int64_t row = 0; row < padded; row += 2)
    for (int64_t c = 0; c < n; c += kTileColumns) {
      Bf16* const to = out + c / kTileColumns * column_stride + row * kTileColumns;
      const Source *const even = w + row * ldw + c, *const odd = even + ldw;
      const int64_t columns = n - c < kTileColumns ? n - c : kTileColumns;
      if (row >= k)
        std::memset(to, 0, 2 * kTileColumns * sizeof *to);
      else if (row + 1 == k || columns < kTileColumns)
        interleave_edge(even, row + 1 < k ? odd : nullptr, columns, to);
      else
        interleave_rows(even, odd, to);
    }
}

template <typename Source>
void pack_rows(const Source* w, int64_t ldw, int64_t k, int64_t n, Bf16* out) {
  pack_rows_strided(w, ldw, k, n, out, (k + kTileDepth - 1) / kTileDepth * kTileSize);
}

// Transposes a tile's pairs [16,16], in squares of vectors. `out` has row stride ldout.
void transpose_pairs(const Bf16* x, Bf16* out, int64_t ldout) {
  constexpr int64_t n = Words::kLanes;
  for (int64_t r = 0; r < kPairs; r += n)
    for (int64_t c = 0; c < kPairs; c += n) {
      Words::Type square[n];
      for (int64_t i = 0; i < n; ++i) square[i] = Words::load(x + (r + i) * kTileDepth + 2 * c);
      transpose_square<Words>(square);
      for (int64_t i = 0; i < n; ++i) Words::store(out + (c + i) * ldout + 2 * r, square[i]);
    }
}

// Rounds `count` elements and pads with zeros to the next multiple of kTileDepth. Stores full
// vectors.
inline void round_padded(const float* x, int64_t count, Bf16* out) {
  int64_t i = 0;
  for (; i + Words::kLanes <= count; i += Words::kLanes)
    round_vector(Vector<float>::load(x + i), out + i);
  if (i < count) {
    round_vector(load_first_floats(x + i, count - i), out + i);
    i += Words::kLanes;
  }
  for (; i % kTileDepth != 0; i += Words::kLanes) round_vector(Vector<float>::Type{}, out + i);
}

void round_rows(const float* x, int64_t ldx, int64_t rows, int64_t cols, Bf16* out, int64_t ldout) {
  for (int64_t r = 0; r < rows; ++r) round_padded(x + r * ldx, cols, out + r * ldout);
}

// Copies `count` elements to one row of a transposed tile and pads it with zeros.
inline void copy_line(const float* x, int64_t count, Bf16* out) { round_padded(x, count, out); }
inline void copy_line(const Bf16* x, int64_t count, Bf16* out) {
  std::memset(out, 0, kTileDepth * sizeof *out);
  std::memcpy(out, x, count * sizeof *x);
}

// 16 rows of w with 32 elements each become a tile when their pairs are transposed.
template <typename Source>
void pack_columns(const Source* w, int64_t ldw, int64_t k, int64_t n, Bf16* out) {
  for (int64_t c = 0; c < n; c += kTileColumns)
    for (int64_t row = 0; row < k; row += kTileDepth, out += kTileSize) {
      const Source* const from = w + c * ldw + row;
      alignas(64) Bf16 lines[kTileSize];
      if (k - row >= kTileDepth && n - c >= kTileColumns) {
        for (int64_t i = 0; i < kTileColumns; ++i)  // a constant length, for speed
          copy_line(from + i * ldw, kTileDepth, lines + i * kTileDepth);
      } else {
        const int64_t height = n - c < kTileColumns ? n - c : kTileColumns;
        const int64_t length = k - row < kTileDepth ? k - row : kTileDepth;
        for (int64_t i = 0; i < height; ++i)
          copy_line(from + i * ldw, length, lines + i * kTileDepth);
        std::memset(lines + height * kTileDepth, 0,
                    (kTileColumns - height) * kTileDepth * sizeof *lines);
      }
      transpose_pairs(lines, out, kTileDepth);
    }
}

// Each transposed tile of x's row pairs gives 16 rows of the result.
template <typename Source>
void transpose_rows(const Source* x, int64_t ldx, int64_t rows, int64_t cols, Bf16* out,
                    int64_t ldout) {
  for (int64_t c = 0; c < cols; c += kTileColumns)
    for (int64_t r = 0; r < rows; r += kTileDepth) {
      const Source* const from = x + r * ldx + c;
      Bf16* const to = out + c * ldout + r;
      const int64_t height = rows - r < kTileDepth ? rows - r : kTileDepth;
      const int64_t width = cols - c < kTileColumns ? cols - c : kTileColumns;
      alignas(64) Bf16 tile[kTileSize], transposed[kTileSize];
      if (height == kTileDepth && width == kTileColumns) {
        for (int64_t i = 0; i < kTileDepth; i += 2)
          interleave_rows(from + i * ldx, from + (i + 1) * ldx, tile + i * kTileColumns);
        transpose_pairs(tile, to, ldout);
        continue;
      }
      pack_rows(from, ldx, height, width, tile);
      transpose_pairs(tile, transposed, kTileDepth);
      for (int64_t i = 0; i < width; ++i)
        std::memcpy(to + i * ldout, transposed + i * kTileDepth, kTileDepth * sizeof *out);
    }
}

void unpack(const Bf16* tiles, int64_t column_stride, int64_t k, int64_t n, float* out,
            int64_t ldout) {
  for (int64_t c = 0; c < n; c += kTileColumns, tiles += column_stride)
    for (int64_t row = 0; row < k; ++row) {
      const Bf16* const pairs = tiles + row / 2 * kTileDepth;
      const int64_t width = n - c < kTileColumns ? n - c : kTileColumns;
      uint32_t words[kTileColumns];
      for (int64_t i = 0; i < kTileColumns; i += Words::kLanes) {
        const auto pair = Words::load(pairs + 2 * i);
        Words::store(words + i, row % 2 ? pair & kUpperHalf : pair << 16);
      }
      std::memcpy(out + row * ldout + c, words, width * sizeof *out);
    }
}

constexpr Bf16RowOps kBf16Ops{{bf16_head_dots, scale_bf16_heads, add_scaled_bf16_heads},
                              {bf16_last_dots, scale_bf16_last, add_scaled_bf16_last},
                              dot_and_add_bf16,
                              round_row,
                              widen_row,
                              pack_rows<float>,
                              pack_rows_strided<float>,
                              pack_rows<Bf16>,
                              pack_rows_strided<Bf16>,
                              pack_columns<float>,
                              pack_columns<Bf16>,
                              transpose_rows<Bf16>,
                              transpose_rows<float>,
                              round_rows,
                              unpack,
                              few_rows,
                              few_rows_transposed};

}  // namespace
}  // namespace translution::kernels
