// Products of bfloat16 on every instruction set, compared with double, at sizes that do not fill
// tiles.

#include <gtest/gtest.h>

#include "tests/kernels/bf16_cases.h"
#include "tests/kernels/emulated_tiles.h"
#include "translution/kernels/bf16_tiles-inl.h"
#include "translution/kernels/gemm.h"

namespace translution::kernels {
namespace {

using Kind = Bf16Matrix::Kind;

struct Case {
  int64_t m, k, n;
  int64_t gap, shift;  // numbers between rows, and before the first
  Kind kind;
  bool accumulate;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.m << "x" << c.k << "x" << c.n << ", gap " << c.gap << ", shift " << c.shift
             << (c.kind == Kind::integers ? ", integers" : "") << (c.accumulate ? ", added" : "");
}

std::vector<Case> cases() {
  struct Shape {
    int64_t m, k, n;
  };
  std::vector<Shape> shapes = {
      {1, 8, 8},    {2, 9, 24},     {33, 26, 72},  {17, 72, 97}, {16, 32, 16},  {32, 64, 32},
      {31, 97, 26}, {64, 192, 192}, {48, 160, 64}, {5, 800, 40}, {300, 64, 48}, {3, 40, 600},
      {97, 33, 15}, {1, 192, 192},  {0, 8, 8},     {3, 0, 5},    {3, 5, 0}};
  for (int64_t rows = 1; rows <= 33; ++rows) shapes.push_back({rows, 24 + rows % 3, 20 + rows});
  std::vector<Case> all;
  for (const Shape& shape : shapes)
    for (const Kind kind : {Kind::normal, Kind::integers})
      for (const bool accumulate : {false, true})
        for (const int64_t odd : {0, 1})
          all.push_back({shape.m, shape.k, shape.n, 5 * odd, 3 * odd, kind, accumulate});
  return all;
}

// The operands A [m,k] and B [k,n] of a product.
struct Operands {
  explicit Operands(const Case& c, std::mt19937 random = std::mt19937(1))
      : a(c.m, c.k, c.gap, c.shift, c.kind, random), b(c.k, c.n, c.gap, 0, c.kind, random) {}
  Bf16Matrix a, b;
};

void expect_correct(const Case& c, const Operands& operands, const Guarded& result) {
  expect_product(
      result, c.m, c.n, c.k, c.accumulate, c.kind == Kind::integers,
      [&](int64_t row, int64_t i) { return operands.a.at(row, i); },
      [&](int64_t i, int64_t column) { return operands.b.at(i, column); });
}

TEST(Bf16Products, MatchDoubleOnEveryInstructionSet) {
  for (const Isa isa : available_isas()) {
    Bf16Products products(isa);
    for (const Case& c : cases()) {
      SCOPED_TRACE(testing::Message() << name_of(kIsas, isa) << ": " << c);
      const Operands operands(c);
      const auto tiles = operands.b.packed(c.k);
      Guarded result(c.m, c.n, c.gap, c.shift);
      products.multiply(c.m, operands.a.data(), operands.a.stride(),
                        PackedMatrix(tiles.data(), c.k, c.n), c.accumulate, result.data(),
                        result.stride());
      expect_correct(c, operands, result);
    }
  }
}

TEST(Bf16Products, MatchDoubleInEmulatedTiles) {
  for (const Case& c : cases()) {
    if (c.k == 0) continue;  // Bf16Products clears C itself
    SCOPED_TRACE(testing::Message() << c);
    const Operands operands(c);
    const auto tiles = operands.b.packed(c.k);
    const PackedMatrix b(tiles.data(), c.k, c.n);
    Guarded result(c.m, c.n, c.gap, c.shift);
    std::vector<Bf16> scratch(static_cast<size_t>(tile_scratch_size(c.m, c.k)));
    EmulatedTiles emulated;
    multiply_in_tiles(emulated,
                      {c.m, c.n, c.k, operands.a.data(), operands.a.stride(), b.tiles,
                       b.column_stride, result.data(), result.stride(), c.accumulate},
                      scratch.data(), bf16_row_ops(Isa::scalar).round);
    expect_correct(c, operands, result);
  }
}

TEST(Bf16Products, RoundedAreTheFloatResultsRounded) {
  for (const Isa isa : available_isas()) {
    Bf16Products products(isa);
    for (const Case& c : cases()) {
      if (c.k == 0 || c.m == 0) continue;
      SCOPED_TRACE(testing::Message() << name_of(kIsas, isa) << ": " << c);
      const Operands operands(c);
      const auto tiles = operands.b.packed(c.k);
      const PackedMatrix b(tiles.data(), c.k, c.n);
      std::vector<float> sums(static_cast<size_t>(c.m * c.n));
      std::vector<Bf16> rounded(sums.size() + 1, Bf16{7});
      products.multiply(c.m, operands.a.data(), operands.a.stride(), b, false, sums.data(), c.n);
      products.multiply_rounded(c.m, operands.a.data(), operands.a.stride(), b, rounded.data());
      for (size_t i = 0; i < sums.size(); ++i)
        ASSERT_EQ(rounded[i].bits, bf16_of(sums[i]).bits) << i;
      EXPECT_EQ(rounded.back().bits, 7);
    }
  }
}

TEST(Bf16Products, AreRoundedInEmulatedTiles) {
  for (const Case& c : cases()) {
    if (c.k == 0 || c.m == 0) continue;
    SCOPED_TRACE(testing::Message() << c);
    const Operands operands(c);
    const auto tiles = operands.b.packed(c.k);
    const PackedMatrix b(tiles.data(), c.k, c.n);
    std::vector<Bf16> scratch(static_cast<size_t>(tile_scratch_size(c.m, c.k)));
    std::vector<float> sums(static_cast<size_t>(c.m * c.n));
    std::vector<Bf16> rounded(sums.size() + 1, Bf16{7});
    EmulatedTiles emulated;
    Bf16Product product{
        c.m,         c.n, c.k,  operands.a.data(), operands.a.stride(), b.tiles, b.column_stride,
        sums.data(), c.n, false};
    multiply_in_tiles(emulated, product, scratch.data(), bf16_row_ops(Isa::scalar).round);
    product.rounded = rounded.data();
    multiply_in_tiles(emulated, product, scratch.data(), bf16_row_ops(Isa::scalar).round);
    for (size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(rounded[i].bits, bf16_of(sums[i]).bits) << i;
    EXPECT_EQ(rounded.back().bits, 7);
  }
}

// The gradient of B from A [m,k] and dC [m,n].
struct GradientOperands {
  explicit GradientOperands(const Case& c, std::mt19937 random = std::mt19937(2))
      : x(c.m, c.k, c.gap, c.shift, c.kind, random), dy(c.m, c.n, c.gap, c.shift, c.kind, random) {}
  Bf16Matrix x, dy;
};

void expect_correct(const Case& c, const GradientOperands& operands, const Guarded& result) {
  expect_product(
      result, c.k, c.n, c.m, c.accumulate, c.kind == Kind::integers,
      [&](int64_t row, int64_t i) { return operands.x.at(i, row); },
      [&](int64_t i, int64_t column) { return operands.dy.at(i, column); });
}

TEST(Bf16WeightGradients, MatchDoubleOnEveryInstructionSet) {
  auto all = cases();
  all.push_back({800, 40, 24, 0, 0, Kind::normal, false});
  all.push_back({771, 300, 17, 5, 3, Kind::normal, true});
  for (const Isa isa : available_isas()) {
    Bf16Products products(isa);
    for (const Case& c : all) {
      SCOPED_TRACE(testing::Message() << name_of(kIsas, isa) << ": " << c);
      const GradientOperands operands(c);
      Guarded result(c.k, c.n, c.gap, c.shift);
      products.weight_gradient(c.m, c.k, c.n, operands.x.data(), operands.x.stride(),
                               operands.dy.data(), operands.dy.stride(), c.accumulate,
                               result.data(), result.stride());
      expect_correct(c, operands, result);
    }
  }
}

TEST(Bf16WeightGradients, MatchDoubleInEmulatedTiles) {
  const Bf16RowOps& ops = bf16_row_ops(Isa::scalar);
  for (const Case& c : cases()) {
    if (c.m == 0) continue;
    SCOPED_TRACE(testing::Message() << c);
    const GradientOperands operands(c);
    const auto tiles = operands.dy.packed(c.m);
    const PackedMatrix right(tiles.data(), c.m, c.n);
    const int64_t padded = (c.m + 31) / 32 * 32;
    std::vector<Bf16> transposed(static_cast<size_t>(c.k * padded));
    ops.transpose(operands.x.data(), operands.x.stride(), c.m, c.k, transposed.data(), padded);
    Guarded result(c.k, c.n, c.gap, c.shift);
    std::vector<Bf16> scratch(static_cast<size_t>(tile_scratch_size(c.k, padded)));
    EmulatedTiles emulated;
    multiply_in_tiles(emulated,
                      {c.k, c.n, padded, transposed.data(), padded, right.tiles,
                       right.column_stride, result.data(), result.stride(), c.accumulate},
                      scratch.data(), ops.round);
    expect_correct(c, operands, result);
  }
}

// ------------------------------------------------------------------------- fixed order of sums

std::vector<float> multiplied(Bf16Products& products, const Bf16Matrix& a, const PackedMatrix& b,
                              int64_t m, int64_t rows_at_a_time) {
  std::vector<float> c(static_cast<size_t>(m * b.n));
  for (int64_t row = 0; row < m; row += rows_at_a_time)
    products.multiply(std::min(rows_at_a_time, m - row), a.data() + row * a.stride(), a.stride(), b,
                      false, c.data() + row * b.n, b.n);
  return c;
}

TEST(Bf16Products, ARowDoesNotDependOnTheOtherRows) {
  constexpr int64_t m = 300, k = 97, n = 72;
  std::mt19937 random(3);
  const Bf16Matrix a(m, k, 1, 1, Kind::normal, random), b(k, n, 0, 0, Kind::normal, random);
  const auto tiles = b.packed(k);
  const PackedMatrix packed(tiles.data(), k, n);
  for (const Isa isa : available_isas()) {
    if (isa < Isa::avx512_bf16) continue;  // depends on the library
    Bf16Products products(isa);
    const auto all = multiplied(products, a, packed, m, m);
    for (const int64_t rows : {1, 2, 5, 7, 16, 33, 256})
      EXPECT_EQ(multiplied(products, a, packed, m, rows), all) << rows;
  }
}

// vdpbf16ps does two FMAs, starting with the second element of a pair.
float sum_of_pairs(const Bf16Matrix& a, const Bf16Matrix& b, int64_t row, int64_t column,
                   int64_t k) {
  float sum = 0;
  for (int64_t i = 0; i < k; i += 2) {
    if (i + 1 < k) sum = std::fma(a.at(row, i + 1), b.at(i + 1, column), sum);
    sum = std::fma(a.at(row, i), b.at(i, column), sum);
  }
  return sum;
}

TEST(Bf16Products, AddPairByPairWithAvx512) {
  if (available_isas().back() < Isa::avx512_bf16) GTEST_SKIP() << "no vdpbf16ps";
  constexpr int64_t m = 37, k = 97, n = 72;
  std::mt19937 random(10);
  const Bf16Matrix a(m, k, 1, 1, Kind::normal, random), b(k, n, 0, 0, Kind::normal, random);
  const auto tiles = b.packed(k);
  Bf16Products products(Isa::avx512_bf16);
  const auto c = multiplied(products, a, PackedMatrix(tiles.data(), k, n), m, m);
  int64_t different = 0;
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column)
      different += c[static_cast<size_t>(row * n + column)] != sum_of_pairs(a, b, row, column, k);
  EXPECT_EQ(different, 0);
}

TEST(Bf16Products, PartsOfAMatrixGiveTheCompleteProduct) {
  constexpr int64_t m = 37, k = 96, n = 70;
  std::mt19937 random(4);
  const Bf16Matrix a(m, k, 0, 0, Kind::integers, random), b(k, n, 0, 0, Kind::integers, random);
  const auto tiles = b.packed(k);
  const PackedMatrix packed(tiles.data(), k, n);
  for (const Isa isa : available_isas()) {
    Bf16Products products(isa);
    const auto complete = multiplied(products, a, packed, m, m);
    std::vector<float> c(complete.size());
    for (const int64_t first : {0, 32, 64})
      for (const int64_t column : {0, 16, 48}) {
        const auto part = packed.rows(first, 32).columns(column, (column == 0    ? 16
                                                                  : column == 16 ? 48
                                                                                 : n) -
                                                                     column);
        products.multiply(m, a.data() + first, a.stride(), part, first > 0, c.data() + column, n);
      }
    EXPECT_EQ(c, complete) << name_of(kIsas, isa);
  }
}

// Unpacked B as [k,n] or [n,k], with numbers of rows below and above the limit for packing.
TEST(Bf16Products, AcceptUnpackedMatrices) {
  std::vector<Case> all = cases();
  for (const int64_t m : {6, 7, 48, 49, 70})
    for (const bool accumulate : {false, true})
      all.push_back({m, 45, 111, 3, 1, Kind::normal, accumulate});
  for (const Isa isa : available_isas())
    for (const Case& c : all)
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << name_of(kIsas, isa) << " " << c << (transposed ? " transposed" : ""));
        std::mt19937 random(2);
        const Bf16Matrix a(c.m, c.k, c.gap, c.shift, c.kind, random);
        const Bf16Matrix b(transposed ? c.n : c.k, transposed ? c.k : c.n, c.gap, c.shift, c.kind,
                           random);
        Guarded result(c.m, c.n, c.gap, c.shift);
        Bf16Products products(isa);
        products.multiply(c.m, a.data(), a.stride(),
                          RowMatrix{b.data(), b.stride(), c.k, c.n, transposed}, c.accumulate,
                          result.data(), result.stride());
        expect_product(
            result, c.m, c.n, c.k, c.accumulate, c.kind == Kind::integers,
            [&](int64_t row, int64_t i) { return a.at(row, i); },
            [&](int64_t i, int64_t column) {
              return transposed ? b.at(column, i) : b.at(i, column);
            });
      }
}

TEST(Bf16Products, FewRowsGiveTheBitsOfSingleRows) {
  constexpr int64_t k = 99, n = 77;
  std::mt19937 random(3);
  const Bf16Matrix a(48, k, 1, 1, Kind::normal, random);
  for (const bool transposed : {false, true}) {
    const Bf16Matrix b(transposed ? n : k, transposed ? k : n, 1, 1, Kind::normal, random);
    const RowMatrix right{b.data(), b.stride(), k, n, transposed};
    for (const Isa isa : available_isas()) {
      Bf16Products products(isa);
      const int64_t most = products.few_rows();
      std::vector<float> one(static_cast<size_t>(most * n)), all = one;
      for (int64_t r = 0; r < most; ++r)
        products.multiply(1, a.data() + r * a.stride(), a.stride(), right, false,
                          one.data() + r * n, n);
      for (int64_t m = 1; m <= most; ++m) {
        products.multiply(m, a.data(), a.stride(), right, false, all.data(), n);
        EXPECT_TRUE(std::equal(all.begin(), all.begin() + m * n, one.begin()))
            << name_of(kIsas, isa) << " " << m << (transposed ? " transposed" : "");
      }
    }
  }
}

TEST(Bf16Products, MultiplyHeadsMatchesDouble) {
  for (const Isa isa : available_isas())
    for (const int64_t D : {7, 32, 64})
      for (const int64_t m : {1, 5, 12, 13, 32, 50}) {
        SCOPED_TRACE(testing::Message() << name_of(kIsas, isa) << " " << D << " " << m);
        constexpr int64_t heads = 3, n = 77;
        std::mt19937 random(4);
        const Bf16Matrix a(m, heads * D, 1, 1, Kind::normal, random);
        const Bf16Matrix w(n, heads * D, 3, 1, Kind::normal, random);
        Guarded result(m, heads * n, 2, 1);
        Bf16Products products(isa);
        products.multiply_heads(m, heads, n, D, a.data(), a.stride(), w.data(), w.stride(),
                                result.data(), result.stride());
        int64_t wrong = 0;
        for (int64_t row = 0; row < m; ++row)
          for (int64_t column = 0; column < heads * n; ++column) {
            double sum = 0, size = 0;
            for (int64_t i = column / n * D; i < (column / n + 1) * D; ++i) {
              const double term = double{a.at(row, i)} * w.at(column % n, i);
              sum += term;
              size += std::abs(term);
            }
            const double allowed = static_cast<double>(D + 2) * std::ldexp(size, -24);
            wrong += !(std::abs(result.at(row, column) - sum) <= allowed);
          }
        EXPECT_EQ(wrong, 0);
        result.expect_guards_untouched();
      }
}

TEST(Bf16Products, ObjectsMayOverlapOnAThread) {
  constexpr int64_t m = 20, k = 64, n = 32;
  std::mt19937 random(8);
  const Bf16Matrix a(m, k, 0, 0, Kind::integers, random), b(k, n, 0, 0, Kind::integers, random);
  const auto tiles = b.packed(k);
  const PackedMatrix packed(tiles.data(), k, n);
  for (const Isa isa : available_isas()) {
    Bf16Products outer(isa);
    const auto before = multiplied(outer, a, packed, m, m);
    {
      Bf16Products inner(isa);
      EXPECT_EQ(multiplied(inner, a, packed, m, m), before);
    }
    EXPECT_EQ(multiplied(outer, a, packed, m, m), before);
  }
}

TEST(Bf16Products, CountTheirFlops) {
  constexpr int64_t m = 20, k = 65, n = 33;
  std::mt19937 random(9);
  const Bf16Matrix a(m, k, 0, 0, Kind::normal, random), b(k, n, 0, 0, Kind::normal, random);
  const Bf16Matrix dy(m, n, 0, 0, Kind::normal, random);
  const auto tiles = b.packed(k);
  std::vector<float> c(m * n), db(k * n);
  for (const Isa isa : available_isas()) {
    const int64_t before = gemm_flops();
    {
      Bf16Products products(isa);
      products.multiply(m, a.data(), k, PackedMatrix(tiles.data(), k, n), false, c.data(), n);
      products.weight_gradient(m, k, n, a.data(), k, dy.data(), n, false, db.data(), n);
    }
    EXPECT_EQ(gemm_flops() - before, 2 * 2 * m * k * n) << name_of(kIsas, isa);
  }
}

}  // namespace
}  // namespace translution::kernels
