#include "translution/ops/project_fused.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "translution/kernels/bf16.h"
#include "translution/kernels/gemm.h"
#include "translution/kernels/row_ops.h"
#include "translution/ops/large.h"
#include "translution/ops/packed_weights.h"
#include "translution/ops/parallel.h"

namespace translution {
namespace {

using kernels::Bf16;
using kernels::Bf16Products;
using kernels::gemm;

// Rows that one thread multiplies at a time: the result stays in the L2 cache until the bias, or
// the product with the next weight, is added.
constexpr int64_t kBlock = 128;
// With few rows the blocks are smaller, so that several threads have work.
constexpr int64_t kMinBlock = 16;
// Columns of the result that are computed at a time. In text generation a few rows are multiplied
// by a large vocabulary: each thread then computes a part of the columns.
constexpr int64_t kColumnBlock = 2048;
// With this many rows, a transposed weight is first copied to [in,out]: the libraries are a tenth
// slower on transposed weights.
constexpr int64_t kMinRowsToTranspose = 1024;

int64_t block_count(int64_t count, int64_t length) { return (count + length - 1) / length; }

template <typename T>
at::Tensor transposed(const at::Tensor& weight) {
  auto out = at::empty({weight.size(1), weight.size(0)}, weight.options());
  const int64_t rows = weight.size(0), cols = weight.size(1);
  constexpr int64_t kRows = 64;
  parallel_ranges(block_count(rows, kRows), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * kRows; row < std::min(rows, end * kRows); row += kRows)
      kernels::row_ops<T>().transpose(weight.data_ptr<T>() + row * cols,
                                      std::min(kRows, rows - row), cols, cols, 1, 0,
                                      out.template data_ptr<T>() + row, rows);
  });
  return out;
}

template <typename T>
const T* numbers(const at::Tensor& x) {
  return static_cast<const T*>(x.data_ptr());
}

// Per-thread state of products: empty, or the tiles and scratch buffers of bfloat16 products.
template <typename T>
struct Multiplier {};
template <>
struct Multiplier<Bf16> {
  std::shared_ptr<Bf16Products> products = std::make_shared<Bf16Products>();
};

// A weight as the right-hand side of a product with `rows` rows.
template <typename T>
struct Right {
  using Sum = T;

  Right(const at::Tensor& weight, bool transpose, int64_t rows, bool /*forward*/)
      : matrix(weight.contiguous()), transpose(transpose) {
    in = matrix.size(transpose ? 1 : 0);
    out = matrix.size(transpose ? 0 : 1);
    if (!transpose || rows < kMinRowsToTranspose) return;
    matrix = transposed<T>(matrix);
    this->transpose = false;
  }

  // Computes to [rows,out] = beta * to + x [rows,in] times this weight, for the columns `first` to
  // `first + count`.
  void multiply(const Multiplier<T>&, const T* x, int64_t rows, int64_t first, int64_t count,
                T beta, T* to) const {
    const T* right = matrix.template data_ptr<T>() + first * (transpose ? in : 1);
    gemm<T>(false, transpose, rows, count, in, x, in, right, matrix.size(1), beta, to + first, out);
  }

  at::Tensor matrix;
  bool transpose;
  int64_t in, out;
};

template <>
struct Right<Bf16> {
  using Sum = float;

  Right(const at::Tensor& weight, bool transpose, int64_t rows, bool forward)
      : transpose(transpose),
        in(weight.size(transpose ? 1 : 0)),
        out(weight.size(transpose ? 0 : 1)),
        tiles(packed_weight(weight, transpose, forward)) {
    if (tiles.defined()) return;
    matrix = weight.contiguous();
    if (matrix.scalar_type() == at::kFloat || rows >= kBlock)
      tiles = pack_weight(matrix, transpose);
  }

  void multiply(const Multiplier<Bf16>& multiplier, const Bf16* x, int64_t rows, int64_t first,
                int64_t count, float beta, float* to) const {
    auto& products = *multiplier.products;
    if (tiles.defined())
      products.multiply(rows, x, in,
                        kernels::PackedMatrix(numbers<Bf16>(tiles), in, out).columns(first, count),
                        beta != 0, to + first, out);
    else  // few rows: the weight is not packed
      products.multiply(rows, x, in,
                        kernels::RowMatrix{numbers<Bf16>(matrix) + first * (transpose ? in : 1),
                                           matrix.size(1), in, count, transpose},
                        beta != 0, to + first, out);
  }

  bool transpose;
  int64_t in, out;
  at::Tensor tiles, matrix;
};

template <typename T>
at::TensorOptions sum_options(const at::Tensor& x) {
  return std::is_same_v<T, Bf16> ? x.options().dtype(at::kFloat) : x.options();
}

// Calls work(multiplier, row, rows, column) on blocks of rows and columns; columns are the outer
// loop.
template <typename T, typename Work>
void for_blocks(int64_t rows, int64_t columns, const Work& work) {
  const int64_t length = std::clamp(block_count(rows, 4), kMinBlock, kBlock);
  const int64_t blocks = block_count(rows, length);
  parallel_each(blocks * block_count(columns, kColumnBlock), [&] {
    return [&, multiplier = Multiplier<T>()](int64_t piece) {
      const int64_t row = piece % blocks * length;
      work(multiplier, row, std::min(length, rows - row), piece / blocks * kColumnBlock);
    };
  });
}

template <typename T>
std::vector<at::Tensor> forward(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                                bool transposed) {
  using Sum = typename Right<T>::Sum;
  const int64_t rows = x.size(0), channels = x.size(1);
  int64_t widest = 0;
  std::vector<Right<T>> rights;
  std::vector<at::Tensor> out, added;
  for (const auto& weight : weights) {
    rights.emplace_back(weight, transposed, rows, /*forward=*/true);
    out.push_back(large_empty({rows, rights.back().out}, sum_options<T>(x)));
    widest = std::max(widest, rights.back().out);
  }
  for (const auto& bias : biases)
    added.push_back(bias.to(c10::typeMetaToScalarType(sum_options<T>(x).dtype())).contiguous());
  const auto& ops = kernels::row_ops<Sum>();
  for_blocks<T>(rows, widest, [&](auto& multiplier, int64_t row, int64_t count, int64_t column) {
    for (size_t w = 0; w < rights.size(); ++w) {
      const int64_t width = rights[w].out, columns = std::min(kColumnBlock, width - column);
      if (columns <= 0) continue;
      Sum* to = out[w].template data_ptr<Sum>() + row * width;
      rights[w].multiply(multiplier, numbers<T>(x) + row * channels, count, column, columns, 0, to);
      if (added.empty()) continue;
      for (int64_t r = 0; r < count; ++r)
        ops.add(added[w].template data_ptr<Sum>() + column, columns, to + r * width + column);
    }
  });
  return out;
}

template <typename T>
at::Tensor input_gradient(const std::vector<at::Tensor>& d, at::TensorList weights,
                          bool transposed) {
  using Sum = typename Right<T>::Sum;
  std::vector<Right<T>> rights;
  std::vector<at::Tensor> given;
  for (size_t w = 0; w < d.size(); ++w)
    if (d[w].defined()) {
      given.push_back(d[w]);
      rights.emplace_back(weights[w], !transposed, d[w].size(0), /*forward=*/false);
    }
  const int64_t rows = given[0].size(0), channels = rights[0].out;
  auto out = large_empty({rows, channels}, sum_options<T>(given[0]));
  for_blocks<T>(rows, channels, [&](auto& multiplier, int64_t row, int64_t count, int64_t column) {
    for (size_t w = 0; w < rights.size(); ++w)
      rights[w].multiply(multiplier, numbers<T>(given[w]) + row * rights[w].in, count, column,
                         std::min(kColumnBlock, channels - column), w > 0,
                         out.template data_ptr<Sum>() + row * channels);
  });
  return out;
}

// Computes to [k,n] = a^T b for `rows` rows of a and b, with row strides lda and ldb.
template <typename T>
void multiply_transposed(const Multiplier<T>&, int64_t rows, int64_t k, int64_t n, const T* a,
                         int64_t lda, const T* b, int64_t ldb, T* to, int64_t ldto) {
  gemm<T>(true, false, k, n, rows, a, lda, b, ldb, 0, to, ldto);
}

void multiply_transposed(const Multiplier<Bf16>& multiplier, int64_t rows, int64_t k, int64_t n,
                         const Bf16* a, int64_t lda, const Bf16* b, int64_t ldb, float* to,
                         int64_t ldto) {
  multiplier.products->weight_gradient(rows, k, n, a, lda, b, ldb, false, to, ldto);
}

// The rows are split into a few partial sums, and the result into tiles. This gives enough pieces
// for the threads for any shape, and the split does not depend on the number of threads.
template <typename T>
at::Tensor weight_gradient(const at::Tensor& a, const at::Tensor& b) {
  using Sum = typename Right<T>::Sum;
  constexpr int64_t kTile = 512, kMaxSums = 8, kMinRows = 256, kNumbers = 1 << 21;
  const int64_t rows = a.size(0), m = a.size(1), n = b.size(1);
  const int64_t max_by_memory = std::max<int64_t>(1, kNumbers / std::max<int64_t>(1, m * n));
  const int64_t sums = std::clamp<int64_t>(rows / kMinRows, 1, std::min(kMaxSums, max_by_memory));
  const int64_t length = block_count(rows, sums), across = block_count(n, kTile);
  auto out = large_empty({m, n}, sum_options<T>(a));
  auto other_sums = large_empty({sums - 1, m, n}, out.options());
  const auto sum_at = [&](int64_t sum) {
    return sum == 0 ? out.template data_ptr<Sum>()
                    : other_sums.template data_ptr<Sum>() + (sum - 1) * m * n;
  };
  parallel_each(sums * block_count(m, kTile) * across, [&] {
    return [&, multiplier = Multiplier<T>()](int64_t piece) {
      const int64_t i = piece / across % block_count(m, kTile) * kTile, j = piece % across * kTile;
      const int64_t sum = piece / across / block_count(m, kTile), row = sum * length;
      multiply_transposed(multiplier, std::max<int64_t>(0, std::min(length, rows - row)),
                          std::min(kTile, m - i), std::min(kTile, n - j),
                          numbers<T>(a) + row * m + i, m, numbers<T>(b) + row * n + j, n,
                          sum_at(sum) + i * n + j, n);
    };
  });
  parallel_ranges(m * n, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t sum = 1; sum < sums; ++sum)
      kernels::row_ops<Sum>().add(sum_at(sum) + begin, end - begin, sum_at(0) + begin);
  });
  return out;
}

// Calls work(T()) with the element type T of x.
template <typename Work>
auto with_type(const at::Tensor& x, const Work& work) {
  if (x.scalar_type() == at::kBFloat16) return work(Bf16{});
  return x.scalar_type() == at::kFloat ? work(float{}) : work(double{});
}

}  // namespace

std::vector<at::Tensor> project_fused(const at::Tensor& x, at::TensorList weights,
                                      at::TensorList biases, bool transposed) {
  return with_type(
      x, [&](auto type) { return forward<decltype(type)>(x, weights, biases, transposed); });
}

at::Tensor project_input_gradient(const std::vector<at::Tensor>& d, at::TensorList weights,
                                  bool transposed) {
  const auto given = std::find_if(d.begin(), d.end(), [](const auto& x) { return x.defined(); });
  return with_type(
      *given, [&](auto type) { return input_gradient<decltype(type)>(d, weights, transposed); });
}

at::Tensor project_weight_gradient(const at::Tensor& a, const at::Tensor& b) {
  return with_type(a, [&](auto type) { return weight_gradient<decltype(type)>(a, b); });
}

}  // namespace translution
