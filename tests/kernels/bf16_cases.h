#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "translution/kernels/bf16.h"

namespace translution::kernels {

inline Bf16 bf16_of(float x) {
  Bf16 result;
  bf16_row_ops(Isa::scalar).round(&x, 1, &result);
  return result;
}

inline float value_of(Bf16 x) {
  const uint32_t word = uint32_t{x.bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// A matrix of bfloat16 numbers. The gaps between its rows are NaN.
class Bf16Matrix {
 public:
  enum class Kind { normal, integers };

  Bf16Matrix(int64_t rows, int64_t columns, int64_t gap, int64_t shift, Kind kind,
             std::mt19937& random)
      : columns_(columns),
        stride_(columns + gap),
        shift_(shift),
        numbers_(static_cast<size_t>(shift + rows * stride_), Bf16{0x7FC0}) {
    std::normal_distribution<float> normal;
    std::uniform_int_distribution<int> integers(-8, 8);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        numbers_[static_cast<size_t>(shift + r * stride_ + c)] =
            bf16_of(kind == Kind::normal ? normal(random) : static_cast<float>(integers(random)));
  }

  const Bf16* data() const { return numbers_.data() + shift_; }
  int64_t stride() const { return stride_; }
  float at(int64_t row, int64_t column) const { return value_of(data()[row * stride_ + column]); }

  std::vector<Bf16> packed(int64_t rows, Isa isa = Isa::scalar) const {
    std::vector<Bf16> tiles(static_cast<size_t>(packed_size(rows, columns_)), Bf16{0x7FC0});
    bf16_row_ops(isa).pack_bf16(data(), stride_, rows, columns_, tiles.data());
    return tiles;
  }

 private:
  int64_t columns_, stride_, shift_;
  std::vector<Bf16> numbers_;
};

/// A result [rows, columns], surrounded by guard values that no product may overwrite.
class Guarded {
 public:
  Guarded(int64_t rows, int64_t columns, int64_t gap, int64_t shift)
      : rows_(rows),
        columns_(columns),
        stride_(columns + gap),
        shift_(shift),
        numbers_(static_cast<size_t>(kMargin + shift + rows * stride_ + kMargin), kGuard) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) data()[r * stride_ + c] = initial(r, c);
  }

  /// The initial value of each element, a small integer.
  static float initial(int64_t row, int64_t column) {
    return static_cast<float>((row * 7 + column * 3) % 11) - 5;
  }

  float* data() { return numbers_.data() + kMargin + shift_; }
  const float* data() const { return numbers_.data() + kMargin + shift_; }
  int64_t stride() const { return stride_; }
  float at(int64_t row, int64_t column) const { return data()[row * stride_ + column]; }

  void expect_guards_untouched() const {
    int64_t touched = 0;
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const int64_t index = static_cast<int64_t>(i) - kMargin - shift_;
      const bool inside = index >= 0 && index < rows_ * stride_ && index % stride_ < columns_;
      touched += !inside && numbers_[i] != kGuard;
    }
    EXPECT_EQ(touched, 0);
  }

 private:
  static constexpr int64_t kMargin = 64;
  static constexpr float kGuard = 12345.5f;
  int64_t rows_, columns_, stride_, shift_;
  std::vector<float> numbers_;
};

/// Compares C [m,n] with sum_i left(r,i) * right(i,c), i < k, in double. Integers must be exact;
/// other numbers may be off by one unit of rounding per addition.
template <typename Left, typename Right>
void expect_product(const Guarded& c, int64_t m, int64_t n, int64_t k, bool accumulate, bool exact,
                    const Left& left, const Right& right) {
  double worst = 0;  // relative to the allowed error
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column) {
      double sum = accumulate ? Guarded::initial(row, column) : 0, size = std::abs(sum);
      for (int64_t i = 0; i < k; ++i) {
        const double term = double{left(row, i)} * right(i, column);
        sum += term;
        size += std::abs(term);
      }
      const double error = std::abs(c.at(row, column) - sum);
      const double allowed = exact ? 0 : static_cast<double>(k + 2) * std::ldexp(size, -24);
      if (!(error <= allowed)) worst = std::max(worst, exact ? 2 : error / allowed);
      if (std::isnan(error)) worst = 1e9;
    }
  EXPECT_LE(worst, 1);
  c.expect_guards_untouched();
}

}  // namespace translution::kernels
