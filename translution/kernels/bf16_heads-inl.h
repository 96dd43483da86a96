#pragma once

// Operations with one weight per row and head for bfloat16 rows, as in row_ops-inl.h.

#include "translution/kernels/bf16_vectors-inl.h"

namespace translution::kernels {
namespace {

using Floats = Vector<float>;

inline Floats::Type widened(const Bf16* x) { return (Floats::Type)load_words(x); }

inline Floats::Type widened_first(const Bf16* x, int64_t count) {
  return (Floats::Type)load_first(x, count);
}

float dot_bf16(const float* a, const Bf16* b, int64_t n) {
  Floats::Type first{}, second{};  // two, to hide the latency of the additions
  int64_t c = 0;
  for (; c + 2 * Floats::kLanes <= n; c += 2 * Floats::kLanes) {
    first += Floats::load(a + c) * widened(b + c);
    second += Floats::load(a + c + Floats::kLanes) * widened(b + c + Floats::kLanes);
  }
  if (c + Floats::kLanes <= n) {
    first += Floats::load(a + c) * widened(b + c);
    c += Floats::kLanes;
  }
  if (c < n) second += load_first_floats(a + c, n - c) * widened_first(b + c, n - c);
  return Floats::sum(first + second);
}

// Products of two rows, without the final horizontal sum.
#ifdef __AVX512BF16__
inline __m512bh load_pairs(const Bf16* x) { return (__m512bh)_mm512_loadu_si512(x); }

inline __m512bh load_first_pairs(const Bf16* x, int64_t count) {
  return (__m512bh)_mm512_maskz_loadu_epi16((uint32_t{1} << count) - 1, x);
}

inline Floats::Type row_products(const Bf16* a, const Bf16* b, int64_t n) {
  __m512 sums{};
  int64_t c = 0;
  for (; c + kTileDepth <= n; c += kTileDepth)
    sums = _mm512_dpbf16_ps(sums, load_pairs(a + c), load_pairs(b + c));
  if (c < n)
    sums = _mm512_dpbf16_ps(sums, load_first_pairs(a + c, n - c), load_first_pairs(b + c, n - c));
  return (Floats::Type)sums;
}
#else
inline Floats::Type row_products(const Bf16* a, const Bf16* b, int64_t n) {
  Floats::Type sums{};
  int64_t c = 0;
  for (; c + Floats::kLanes <= n; c += Floats::kLanes) sums += widened(a + c) * widened(b + c);
  if (c < n) sums += widened_first(a + c, n - c) * widened_first(b + c, n - c);
  return sums;
}
#endif

#if TRANSLUTION_VECTOR_BYTES == 64
inline Floats::Type interleaved_sum_16(Floats::Type a, Floats::Type b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23) +
         __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

// out[k] = horizontal sum of p[k], for sixteen vectors at once, as in short_head_dots.
inline void sum_sixteen(Floats::Type (&p)[16], float* out) {
#pragma GCC unroll 4
  for (int64_t half = 8; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int64_t k = 0; k < half; ++k) p[k] = interleaved_sum_16(p[k], p[k + half]);
  Floats::store(out, p[0]);
}

inline void sixteen_dots(const Bf16* a, const Bf16* b, int64_t width, float* out) {
  Floats::Type p[16];
#pragma GCC unroll 16
  for (int64_t k = 0; k < 16; ++k) p[k] = row_products(a + k * width, b + k * width, width);
  sum_sixteen(p, out);
}
#endif

void bf16_head_dots(const Bf16* a, const Bf16* b, int64_t rows, int64_t heads, int64_t width,
                    float* out) {
  int64_t g = 0;
#if TRANSLUTION_VECTOR_BYTES == 64
  for (; g + 16 <= rows * heads; g += 16)
    sixteen_dots(a + g * width, b + g * width, width, out + g);
#endif
  for (; g < rows * heads; ++g)
    out[g] = Floats::sum(row_products(a + g * width, b + g * width, width));
}

void scale_bf16_heads(const float* weight, const Bf16* x, int64_t rows, int64_t heads,
                      int64_t width, Bf16* out) {
  for (int64_t g = 0; g < rows * heads; ++g, x += width, out += width) {
    int64_t c = 0;
    for (; c + Floats::kLanes <= width; c += Floats::kLanes)
      round_vector(widened(x + c) * weight[g], out + c);
    if (c < width) round_first(widened_first(x + c, width - c) * weight[g], width - c, out + c);
  }
}

void add_scaled_bf16_heads(const float* weight, const Bf16* x, int64_t rows, int64_t heads,
                           int64_t width, float* out) {
  for (int64_t g = 0; g < rows * heads; ++g, x += width, out += width) {
    int64_t c = 0;
    for (; c + Floats::kLanes <= width; c += Floats::kLanes)
      Floats::store(out + c, Floats::load(out + c) + widened(x + c) * weight[g]);
    const auto rest = c < width ? widened_first(x + c, width - c) * weight[g] : Floats::Type{};
    for (int64_t i = c; i < width; ++i) out[i] += rest[i - c];
  }
}

void dot_and_add_bf16(const float* u, const Bf16* x, const float* weight, int64_t rows,
                      int64_t heads, int64_t channels, float* dots, float* out) {
  for (int64_t r = 0; r < rows; ++r) {
    dots[r * heads] = dot_bf16(u + r * channels, x + r * channels, channels);
    add_scaled(weight[r * heads], u + r * channels, channels, out + r * channels);
  }
}

}  // namespace
}  // namespace translution::kernels
