#pragma once

// Operations with one weight per row and head, with rows as the last dimension and packed. Vectors
// hold samples, so they are full even if a head is narrow. A row of a tile has two channels, which
// may belong to different heads.

#include "translution/kernels/bf16_vectors-inl.h"

namespace translution::kernels {
namespace {

// Calls work(first, count, tiles) for each vector of rows: `count` of its rows exist, and `tiles`
// is the index of channels 0 and 1 of row `first`.
template <typename Work>
void over_packed_rows(int64_t rows, int64_t channels, const Work& work) {
  const int64_t column_stride = (channels + kTileDepth - 1) / kTileDepth * kTileSize;
  for (int64_t first = 0; first < rows; first += Words::kLanes) {
    const int64_t rest = rows - first;
    work(first, rest < Words::kLanes ? rest : Words::kLanes,
         first / kTileColumns * column_stride + 2 * (first % kTileColumns));
  }
}

struct TwoChannels {
  Vector<float>::Type even, odd;
};

inline TwoChannels load_two(const Bf16* pairs) {
  const auto words = Words::load(pairs);
  return {(Vector<float>::Type)(words << 16), (Vector<float>::Type)(words & kUpperHalf)};
}

inline Vector<float>::Type load_rows(const float* x, int64_t count) {
  return count == Words::kLanes ? Vector<float>::load(x) : load_first_floats(x, count);
}

inline void store_rows(float* x, int64_t count, Vector<float>::Type numbers) {
  if (count == Words::kLanes)
    Vector<float>::store(x, numbers);
  else
    std::memcpy(x, &numbers, count * sizeof *x);
}

// sum += a b over two channels of one head.
inline Vector<float>::Type add_two(Vector<float>::Type sum, const Bf16* a, const Bf16* b) {
#ifdef __AVX512BF16__
  return (Vector<float>::Type)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_loadu_si512(a),
                                               (__m512bh)_mm512_loadu_si512(b));
#else
  const auto left = load_two(a), right = load_two(b);
  return sum + left.odd * right.odd + left.even * right.even;
#endif
}

void bf16_last_dots(const Bf16* a, const Bf16* b, int64_t rows, int64_t heads, int64_t width,
                    int64_t stride, float* out) {
  over_packed_rows(rows, heads * width, [&](int64_t first, int64_t count, int64_t tiles) {
    const Bf16 *left = a + tiles, *right = b + tiles;
    Vector<float>::Type
        carried{};  // the first channel of a head, from the previous head's last tile row
    for (int64_t h = 0; h < heads; ++h) {
      auto sum = carried;
      int64_t c = h * width + (h * width) % 2;
      for (; c + 2 <= (h + 1) * width; c += 2)
        sum = add_two(sum, left + c / 2 * kTileDepth, right + c / 2 * kTileDepth);
      carried = Vector<float>::Type{};
      if (c < (h + 1) * width) {
        const auto x = load_two(left + c / 2 * kTileDepth),
                   y = load_two(right + c / 2 * kTileDepth);
        sum += x.even * y.even;
        carried = x.odd * y.odd;
      }
      store_rows(out + h * stride + first, count, sum);
    }
  });
}

// Calls work(c, weights of channel c, weights of channel c + 1) for every second channel c.
template <typename Work>
void over_channels(const float* weight, int64_t first, int64_t count, int64_t heads, int64_t width,
                   int64_t stride, const Work& work) {
  Vector<float>::Type w{};
  for (int64_t c = 0, h = -1; c < heads * width; c += 2) {
    if (c / width != h) w = load_rows(weight + (h = c / width) * stride + first, count);
    const auto even = w;
    if (c + 1 < heads * width && (c + 1) / width != h)
      w = load_rows(weight + (h = (c + 1) / width) * stride + first, count);
    work(c, even, w);
  }
}

inline void store_two(TwoChannels x, Bf16* pairs, Bf16* even_row, Bf16* odd_row) {
  const Halves even = rounded_halves(x.even), odd = rounded_halves(x.odd);
  Words::store(pairs, __builtin_convertvector(even, Words::Type) |
                          __builtin_convertvector(odd, Words::Type) << 16);
  std::memcpy(even_row, &even, sizeof even);
  if (odd_row) std::memcpy(odd_row, &odd, sizeof odd);
}

void scale_bf16_last(const float* weight, const Bf16* x, int64_t rows, int64_t heads, int64_t width,
                     int64_t stride, Bf16* out, Bf16* matrix, int64_t ldmatrix) {
  const int64_t channels = heads * width;
  over_packed_rows(rows, channels, [&](int64_t first, int64_t count, int64_t tiles) {
    over_channels(weight, first, count, heads, width, stride,
                  [&](int64_t c, Vector<float>::Type even, Vector<float>::Type odd) {
                    const int64_t at = tiles + c / 2 * kTileDepth;
                    const auto two = load_two(x + at);
                    Bf16* const row = matrix + c * ldmatrix + first;
                    store_two({two.even * even, two.odd * odd}, out + at, row,
                              c + 1 < channels ? row + ldmatrix : nullptr);
                  });
  });
}

void add_scaled_bf16_last(const float* weight, const Bf16* x, int64_t rows, int64_t heads,
                          int64_t width, int64_t stride, float* out) {
  const int64_t channels = heads * width;
  over_packed_rows(rows, channels, [&](int64_t first, int64_t count, int64_t tiles) {
    over_channels(weight, first, count, heads, width, stride,
                  [&](int64_t c, Vector<float>::Type even, Vector<float>::Type odd) {
                    const auto two = load_two(x + tiles + c / 2 * kTileDepth);
                    float* const row = out + c * rows + first;
                    store_rows(row, count, load_rows(row, count) + two.even * even);
                    if (c + 1 == channels) return;
                    store_rows(row + rows, count, load_rows(row + rows, count) + two.odd * odd);
                  });
  });
}

}  // namespace
}  // namespace translution::kernels
