#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace translution::kernels {

/// Emulates the tile instructions in plain C++, as the policy `Tiles` of bf16_tiles-inl.h. Follows
/// the pseudocode in Intel's manual; denormals are flushed to 0 in every step.
class EmulatedTiles {
 public:
  template <int t>
  void load(const void* p, int64_t stride) {
    for (int row = 0; row < 16; ++row)
      std::memcpy(tiles_[t][row], static_cast<const char*>(p) + row * stride, 64);
  }

  template <int t>
  void store(void* p, int64_t stride) const {
    for (int row = 0; row < 16; ++row)
      std::memcpy(static_cast<char*>(p) + row * stride, tiles_[t][row], 64);
  }

  template <int t>
  void zero() {
    std::memset(tiles_[t], 0, sizeof tiles_[t]);
  }

  // Even and odd elements of a row are summed separately.
  template <int c, int a, int b>
  void multiply() {
    for (int m = 0; m < 16; ++m)
      for (int n = 0; n < 16; ++n) {
        float even = 0, odd = 0;
        for (int k = 0; k < 16; ++k) {
          even = flushed(std::fma(number(a, m, 2 * k), number(b, k, 2 * n), even));
          odd = flushed(std::fma(number(a, m, 2 * k + 1), number(b, k, 2 * n + 1), odd));
        }
        float sum;
        std::memcpy(&sum, &tiles_[c][m][4 * n], sizeof sum);
        sum = flushed(flushed(sum) + flushed(even + odd));
        std::memcpy(&tiles_[c][m][4 * n], &sum, sizeof sum);
      }
  }

 private:
  static float flushed(float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
  }

  float number(int tile, int row, int column) const {
    uint16_t upper;
    std::memcpy(&upper, &tiles_[tile][row][2 * column], sizeof upper);
    const uint32_t word = uint32_t{upper} << 16;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return flushed(value);
  }

  unsigned char tiles_[8][16][64] = {};
};

}  // namespace translution::kernels
