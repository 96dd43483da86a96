// Dot products and scaling of rows in bfloat16, on every instruction set.

#include <gtest/gtest.h>

#include "tests/kernels/bf16_cases.h"

namespace translution::kernels {
namespace {

struct Heads {
  int64_t rows, heads, width;
};
const Heads kHeads[] = {{1, 1, 1},  {7, 3, 8},  {5, 2, 24}, {3, 3, 64},
                        {4, 1, 97}, {2, 5, 33}, {6, 3, 64}, {33, 1, 26}};

class Bf16Heads : public ::testing::TestWithParam<Heads> {
 protected:
  Bf16Heads()
      : groups(GetParam().rows * GetParam().heads),
        width(GetParam().width),
        x(groups, width, 0, 1, Bf16Matrix::Kind::normal, random),
        y(groups, width, 0, 3, Bf16Matrix::Kind::normal, random),
        a(numbers(groups * width)),
        weight(numbers(groups)) {}

  std::vector<float> numbers(int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> result(static_cast<size_t>(count));
    for (auto& number : result) number = normal(random);
    return result;
  }

  // Compares `out` with the dot products of left(g, :) and group g of x.
  template <typename Left>
  void expect_dots(const float* out, const Left& left) const {
    for (int64_t g = 0; g < groups; ++g) {
      double sum = 0, size = 0;
      for (int64_t c = 0; c < width; ++c) {
        const double term = double{left(g, c)} * x.at(g, c);
        sum += term, size += std::abs(term);
      }
      EXPECT_NEAR(out[g], sum, std::ldexp(size, -22));
    }
    EXPECT_EQ(out[groups], 7);
  }

  // Expects out[i] = a[i] + weight * term(i), within one unit of rounding per operation.
  template <typename Term>
  void expect_sums(const std::vector<float>& out, const Term& term) const {
    for (int64_t i = 0; i < groups * width; ++i) {
      const double before = a[static_cast<size_t>(i)];
      const double term_value = double{weight[static_cast<size_t>(i / width)]} * term(i);
      EXPECT_NEAR(out[static_cast<size_t>(i)], before + term_value,
                  std::ldexp(std::abs(before) + std::abs(term_value), -23));
    }
  }

  std::mt19937 random{11};
  const int64_t groups, width;
  const Bf16Matrix x, y;
  const std::vector<float> a, weight;
};

TEST_P(Bf16Heads, DotsMatchDouble) {
  for (const Isa isa : available_isas()) {
    std::vector<float> out(static_cast<size_t>(groups) + 1, 7);
    bf16_row_ops(isa).heads.dots(y.data(), x.data(), GetParam().rows, GetParam().heads, width,
                                 out.data());
    expect_dots(out.data(), [&](int64_t g, int64_t c) { return y.at(g, c); });
  }
}

TEST_P(Bf16Heads, AreScaledAndRounded) {
  for (const Isa isa : available_isas()) {
    std::vector<Bf16> out(static_cast<size_t>(groups * width) + 1, Bf16{7});
    bf16_row_ops(isa).heads.scale(weight.data(), x.data(), GetParam().rows, GetParam().heads, width,
                                  out.data());
    for (int64_t i = 0; i < groups * width; ++i)
      EXPECT_EQ(out[static_cast<size_t>(i)].bits,
                bf16_of(weight[static_cast<size_t>(i / width)] * value_of(x.data()[i])).bits);
    EXPECT_EQ(out.back().bits, 7);
  }
}

TEST_P(Bf16Heads, AddScaledMatchesDouble) {
  for (const Isa isa : available_isas()) {
    auto out = a;
    out.push_back(7);
    bf16_row_ops(isa).heads.add_scaled(weight.data(), x.data(), GetParam().rows, GetParam().heads,
                                       width, out.data());
    expect_sums(out, [&](int64_t i) { return value_of(x.data()[i]); });
    EXPECT_EQ(out.back(), 7);
  }
}

TEST_P(Bf16Heads, DotAndAddMatchesDouble) {
  for (const Isa isa : available_isas()) {
    std::vector<float> dots(static_cast<size_t>(groups) + 1, 7), out = a;
    bf16_row_ops(isa).dot_and_add(a.data(), x.data(), weight.data(), groups, 1, width, dots.data(),
                                  out.data());
    expect_dots(dots.data(),
                [&](int64_t g, int64_t c) { return a[static_cast<size_t>(g * width + c)]; });
    expect_sums(out, [&](int64_t i) { return a[static_cast<size_t>(i)]; });
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Bf16Heads, ::testing::ValuesIn(kHeads));

// The same with rows as the last dimension and a packed x [heads*width, rows].
class Bf16RowsLast : public ::testing::TestWithParam<Heads> {
 protected:
  Bf16RowsLast()
      : rows(GetParam().rows),
        heads(GetParam().heads),
        width(GetParam().width),
        channels(heads * width),
        stride(rows + 3),
        x(channels, rows, 0, 1, Bf16Matrix::Kind::normal, random),
        y(channels, rows, 0, 3, Bf16Matrix::Kind::normal, random),
        x_packed(x.packed(channels)),
        y_packed(y.packed(channels)),
        weight(static_cast<size_t>(heads * stride)) {
    std::normal_distribution<float> normal;
    for (auto& number : weight) number = normal(random);
  }

  float weight_of(int64_t channel, int64_t row) const {
    return weight[static_cast<size_t>(channel / width * stride + row)];
  }

  std::mt19937 random{13};
  const int64_t rows, heads, width, channels, stride;
  const Bf16Matrix x, y;
  const std::vector<Bf16> x_packed, y_packed;
  std::vector<float> weight;
};

TEST_P(Bf16RowsLast, DotsMatchDouble) {
  for (const Isa isa : available_isas()) {
    std::vector<float> out(static_cast<size_t>(heads * stride), 7);
    bf16_row_ops(isa).rows_last.dots(x_packed.data(), y_packed.data(), rows, heads, width, stride,
                                     out.data());
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t r = 0; r < stride; ++r) {
        double sum = 0, size = 0;
        for (int64_t c = h * width; r < rows && c < (h + 1) * width; ++c)
          sum += double{x.at(c, r)} * y.at(c, r), size += std::abs(double{x.at(c, r)} * y.at(c, r));
        const float got = out[static_cast<size_t>(h * stride + r)];
        EXPECT_NEAR(got, r < rows ? sum : 7, std::ldexp(size, -21)) << name_of(kIsas, isa);
      }
  }
}

TEST_P(Bf16RowsLast, AreScaledAndRoundedInBothOrders) {
  const int64_t ld = (rows + 31) / 32 * 32;
  for (const Isa isa : available_isas()) {
    std::vector<Bf16> packed(x_packed.size(), Bf16{0});
    std::vector<Bf16> matrix(static_cast<size_t>(channels * ld), Bf16{0});
    bf16_row_ops(isa).rows_last.scale(weight.data(), x_packed.data(), rows, heads, width, stride,
                                      packed.data(), matrix.data(), ld);
    std::vector<float> unpacked(static_cast<size_t>(channels * rows));
    bf16_row_ops(isa).unpack(packed.data(), (channels + 31) / 32 * kTileSize, channels, rows,
                             unpacked.data(), rows);
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t r = 0; r < ld; ++r) {
        const float got = value_of(matrix[static_cast<size_t>(c * ld + r)]);
        const float expected = r < rows ? value_of(bf16_of(weight_of(c, r) * x.at(c, r))) : 0;
        EXPECT_EQ(got, expected) << name_of(kIsas, isa) << " " << c << ", " << r;
        if (r < rows) {
          EXPECT_EQ(unpacked[static_cast<size_t>(c * rows + r)], expected);
        }
      }
  }
}

TEST_P(Bf16RowsLast, AddScaledMatchesDouble) {
  for (const Isa isa : available_isas()) {
    std::vector<float> out(static_cast<size_t>(channels * rows) + 1, 0.5f);
    bf16_row_ops(isa).rows_last.add_scaled(weight.data(), x_packed.data(), rows, heads, width,
                                           stride, out.data());
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t r = 0; r < rows; ++r) {
        const double term_value = double{weight_of(c, r)} * x.at(c, r);
        EXPECT_NEAR(out[static_cast<size_t>(c * rows + r)], 0.5 + term_value,
                    std::ldexp(0.5 + std::abs(term_value), -23));
      }
    EXPECT_EQ(out.back(), 0.5f);
  }
}

const Heads kRowsLast[] = {{16, 3, 8},  {64, 3, 8}, {17, 3, 7}, {33, 1, 1},
                           {20, 2, 24}, {1, 5, 9},  {31, 3, 1}, {64, 1, 63}};
INSTANTIATE_TEST_SUITE_P(Sizes, Bf16RowsLast, ::testing::ValuesIn(kRowsLast));

}  // namespace
}  // namespace translution::kernels
