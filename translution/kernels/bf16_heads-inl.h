// What is done with one number for each row and head where rows are bfloat16, as in row_ops-inl.h.

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

void bf16_head_dots(const float* a, const Bf16* b, int64_t rows, int64_t heads, int64_t width,
                    float* out) {
  for (int64_t g = 0; g < rows * heads; ++g) out[g] = dot_bf16(a + g * width, b + g * width, width);
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
