// Our products of float and double on every instruction set, compared with sums in double, at sizes
// that do not fill tiles.

#include "translution/kernels/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "translution/core/cpu_info.h"
#include "translution/core/names.h"

namespace translution::kernels {
namespace {

struct Case {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  double beta;
  int64_t gap;  // numbers between rows
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << (c.transpose_a ? "A^T " : "A ") << (c.transpose_b ? "B^T " : "B ") << c.m << "x"
             << c.n << "x" << c.k << ", beta " << c.beta << ", gap " << c.gap;
}

std::vector<Case> cases() {
  struct Shape {
    int64_t m, n, k;
  };
  std::vector<Shape> shapes = {{1, 1, 1},     {0, 5, 3},       {5, 0, 3},     {3, 5, 0},
                               {50, 50, 64},  {100, 192, 192}, {31, 48, 257}, {337, 33, 5},
                               {9, 200, 520}, {192, 192, 16},  {24, 24, 600}, {170, 1, 256}};
  for (int64_t size = 1; size <= 40; ++size)
    shapes.push_back({size, 1 + (7 * size) % 52, 41 - size});
  std::vector<Case> all;
  int64_t i = 0;
  for (const Shape& s : shapes)
    for (const bool a : {false, true})
      for (const bool b : {false, true})
        for (const double beta : {0.0, 1.0, 0.5})
          all.push_back({a, b, s.m, s.n, s.k, beta, ++i % 3 == 0 ? 5 : 0});
  return all;
}

// Rows with NaN between them: whoever reads a gap spoils the result.
template <typename T>
struct Matrix {
  Matrix(int64_t rows, int64_t cols, int64_t gap, std::mt19937& random)
      : stride(cols + gap), data(rows * stride + gap, std::numeric_limits<T>::quiet_NaN()) {
    std::normal_distribution<T> normal;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) data[r * stride + c] = normal(random);
  }
  int64_t stride;
  std::vector<T> data;
};

template <typename T>
struct Operands {
  explicit Operands(const Case& c, std::mt19937 random = std::mt19937(1))
      : a(c.transpose_a ? c.k : c.m, c.transpose_a ? c.m : c.k, c.gap, random),
        b(c.transpose_b ? c.n : c.k, c.transpose_b ? c.k : c.n, c.gap, random),
        before(c.m, c.n, c.gap, random),
        result(before) {
    if (c.beta == 0) {
      std::fill(before.data.begin(), before.data.end(), std::numeric_limits<T>::quiet_NaN());
      result = before;
    }
  }
  Gemm<T> product(const Case& c) {
    return {c.transpose_a,      c.transpose_b, c.m,           c.n,      c.k,
            a.data.data(),      a.stride,      b.data.data(), b.stride, T(c.beta),
            result.data.data(), result.stride};
  }
  Matrix<T> a, b, before, result;
};

template <typename T>
void expect_correct(const Case& c, const Operands<T>& o) {
  const auto a = [&](int64_t r, int64_t i) {
    return double{o.a.data[c.transpose_a ? i * o.a.stride + r : r * o.a.stride + i]};
  };
  const auto b = [&](int64_t i, int64_t j) {
    return double{o.b.data[c.transpose_b ? j * o.b.stride + i : i * o.b.stride + j]};
  };
  for (int64_t r = 0; r < c.m; ++r) {
    for (int64_t j = 0; j < c.n; ++j) {
      const double start = c.beta == 0 ? 0 : c.beta * o.before.data[r * o.before.stride + j];
      double sum = start, size = std::abs(start);
      for (int64_t i = 0; i < c.k; ++i)
        sum += a(r, i) * b(i, j), size += std::abs(a(r, i) * b(i, j));
      const double bound = (c.k + 2) * size * std::numeric_limits<T>::epsilon();
      ASSERT_LE(std::abs(o.result.data[r * o.result.stride + j] - sum), bound) << r << ", " << j;
    }
    for (int64_t j = c.n; j < o.result.stride; ++j)
      ASSERT_TRUE(std::isnan(o.result.data[r * o.result.stride + j])) << "written behind row " << r;
  }
}

template <typename T>
class GemmKernels : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(GemmKernels, Types);

TYPED_TEST(GemmKernels, MatchDoubleOnEveryInstructionSet) {
  for (const Isa isa : available_isas())
    for (const Case& c : cases()) {
      SCOPED_TRACE(testing::Message() << name_of(kIsas, isa) << ": " << c);
      Operands<TypeParam> operands(c);
      gemm_function<TypeParam>(isa)(operands.product(c));
      expect_correct(c, operands);
    }
}

TYPED_TEST(GemmKernels, GemmIsOneOfThem) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c);
    Operands<TypeParam> operands(c);
    const int64_t before = gemm_flops();
    gemm(operands.product(c));
    EXPECT_EQ(gemm_flops() - before, 2 * c.m * c.n * c.k);
    expect_correct(c, operands);
  }
}

// The bits of a row do not depend on how many rows and columns are computed with it.
TYPED_TEST(GemmKernels, ARowHasTheSameBitsInAnyProduct) {
  const Case all{false, false, 77, 200, 300, 0, 0};
  for (const Isa isa : available_isas()) {
    Operands<TypeParam> whole(all);
    const auto product = whole.product(all);
    gemm_function<TypeParam>(isa)(product);
    for (const int64_t rows : {1, 3, 8, 40})
      for (const int64_t columns : {1, 17, 64, 199}) {
        std::vector<TypeParam> part(rows * columns);
        auto smaller = product;
        smaller.m = rows, smaller.n = columns, smaller.c = part.data(), smaller.ldc = columns;
        gemm_function<TypeParam>(isa)(smaller);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t j = 0; j < columns; ++j)
            ASSERT_EQ(part[r * columns + j], whole.result.data[r * 200 + j])
                << name_of(kIsas, isa) << ": " << rows << "x" << columns << " at " << r << ", "
                << j;
      }
  }
}

}  // namespace
}  // namespace translution::kernels
