#include "translution/ops/project_fused.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <algorithm>

#include "translution/kernels/gemm.h"
#include "translution/kernels/row_ops.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"

namespace translution {
namespace {

using kernels::gemm;

// Rows that one thread multiplies at a time: the result stays in the second-level cache until its
// bias, or the next weight's part, is added.
constexpr int64_t kBlock = 128;
// Of few rows it takes fewer, so that there is work for more than one.
constexpr int64_t kLeastBlock = 16;
// Columns of the result that are computed at a time: of a vocabulary, which few rows are multiplied
// with when a text is continued, each thread takes a part.
constexpr int64_t kColumns = 2048;
// From so many rows on a transposed weight is turned first; the libraries lose a tenth otherwise.
constexpr int64_t kWorthTurning = 1024;

int64_t parts(int64_t count, int64_t of) { return (count + of - 1) / of; }

template <typename T>
at::Tensor turned(const at::Tensor& weight) {
  auto out = at::empty({weight.size(1), weight.size(0)}, weight.options());
  const int64_t rows = weight.size(0), cols = weight.size(1);
  constexpr int64_t kRows = 64;
  at::parallel_for(0, parts(rows, kRows), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * kRows; row < std::min(rows, end * kRows); row += kRows)
      kernels::row_ops<T>().transpose(weight.data_ptr<T>() + row * cols,
                                      std::min(kRows, rows - row), cols, cols, 1, 0,
                                      out.template data_ptr<T>() + row, rows);
  });
  return out;
}

// A weight as the right-hand side of a product with `rows` rows.
template <typename T>
struct Right {
  Right(const at::Tensor& weight, bool transpose, int64_t rows)
      : matrix(weight.contiguous()), transpose(transpose) {
    in = matrix.size(transpose ? 1 : 0);
    out = matrix.size(transpose ? 0 : 1);
    if (!transpose || rows < kWorthTurning) return;
    matrix = turned<T>(matrix);
    this->transpose = false;
  }

  // Columns `first` to `first + count` of: to [rows,out] = beta * to + x [rows,in] times this.
  void multiply(const T* x, int64_t rows, int64_t first, int64_t count, T beta, T* to) const {
    const T* right = matrix.template data_ptr<T>() + first * (transpose ? in : 1);
    gemm<T>(false, transpose, rows, count, in, x, in, right, matrix.size(1), beta, to + first, out);
  }

  at::Tensor matrix;
  bool transpose;
  int64_t in, out;
};

// work(row, rows, column) for blocks of rows and, in the outer loop, columns.
template <typename Work>
void for_blocks(int64_t rows, int64_t columns, const Work& work) {
  const int64_t length = std::clamp(parts(rows, 4), kLeastBlock, kBlock);
  const int64_t blocks = parts(rows, length);
  parallel_each(blocks * parts(columns, kColumns), [&] {
    return [&](int64_t piece) {
      const int64_t row = piece % blocks * length;
      work(row, std::min(length, rows - row), piece / blocks * kColumns);
    };
  });
}

template <typename T>
std::vector<at::Tensor> forward(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                                bool transposed) {
  const int64_t rows = x.size(0), channels = x.size(1);
  int64_t widest = 0;
  std::vector<Right<T>> rights;
  std::vector<at::Tensor> out, added;
  for (const auto& weight : weights) {
    rights.emplace_back(weight, transposed, rows);
    out.push_back(large_empty({rows, rights.back().out}, x.options()));
    widest = std::max(widest, rights.back().out);
  }
  for (const auto& bias : biases) added.push_back(bias.contiguous());
  const auto& ops = kernels::row_ops<T>();
  for_blocks(rows, widest, [&](int64_t row, int64_t count, int64_t column) {
    for (size_t w = 0; w < rights.size(); ++w) {
      const int64_t width = rights[w].out, columns = std::min(kColumns, width - column);
      if (columns <= 0) continue;
      T* to = out[w].template data_ptr<T>() + row * width;
      rights[w].multiply(x.data_ptr<T>() + row * channels, count, column, columns, 0, to);
      if (added.empty()) continue;
      for (int64_t r = 0; r < count; ++r)
        ops.add(added[w].template data_ptr<T>() + column, columns, to + r * width + column);
    }
  });
  return out;
}

template <typename T>
at::Tensor input_gradient(const std::vector<at::Tensor>& d, at::TensorList weights,
                          bool transposed) {
  std::vector<Right<T>> rights;
  std::vector<at::Tensor> given;
  for (size_t w = 0; w < d.size(); ++w)
    if (d[w].defined()) {
      given.push_back(d[w]);
      rights.emplace_back(weights[w], !transposed, d[w].size(0));
    }
  const int64_t rows = given[0].size(0), channels = rights[0].out;
  auto out = large_empty({rows, channels}, given[0].options());
  for_blocks(rows, channels, [&](int64_t row, int64_t count, int64_t column) {
    for (size_t w = 0; w < rights.size(); ++w)
      rights[w].multiply(given[w].template data_ptr<T>() + row * rights[w].in, count, column,
                         std::min(kColumns, channels - column), w > 0,
                         out.template data_ptr<T>() + row * channels);
  });
  return out;
}

// The rows are cut into a few parts with a sum each, and the result into tiles: enough pieces for
// the threads, whatever the shape, and always the same ones.
template <typename T>
at::Tensor weight_gradient(const at::Tensor& a, const at::Tensor& b) {
  constexpr int64_t kTile = 512, kMostSums = 8, kLeastRows = 256, kNumbers = 1 << 21;
  const int64_t rows = a.size(0), m = a.size(1), n = b.size(1);
  const int64_t affordable = std::max<int64_t>(1, kNumbers / std::max<int64_t>(1, m * n));
  const int64_t sums = std::clamp<int64_t>(rows / kLeastRows, 1, std::min(kMostSums, affordable));
  const int64_t length = parts(rows, sums), across = parts(n, kTile);
  auto out = large_empty({m, n}, a.options()), more = large_empty({sums - 1, m, n}, a.options());
  const auto sum_at = [&](int64_t sum) {
    return sum == 0 ? out.template data_ptr<T>() : more.template data_ptr<T>() + (sum - 1) * m * n;
  };
  parallel_each(sums * parts(m, kTile) * across, [&] {
    return [&](int64_t piece) {
      const int64_t i = piece / across % parts(m, kTile) * kTile, j = piece % across * kTile;
      const int64_t sum = piece / across / parts(m, kTile), row = sum * length;
      gemm<T>(true, false, std::min(kTile, m - i), std::min(kTile, n - j),
              std::max<int64_t>(0, std::min(length, rows - row)), a.data_ptr<T>() + row * m + i, m,
              b.data_ptr<T>() + row * n + j, n, 0, sum_at(sum) + i * n + j, n);
    };
  });
  at::parallel_for(0, m * n, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t sum = 1; sum < sums; ++sum)
      kernels::row_ops<T>().add(sum_at(sum) + begin, end - begin, sum_at(0) + begin);
  });
  return out;
}

}  // namespace

std::vector<at::Tensor> project_fused(const at::Tensor& x, at::TensorList weights,
                                      at::TensorList biases, bool transposed) {
  std::vector<at::Tensor> out;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "project",
                             [&] { out = forward<scalar_t>(x, weights, biases, transposed); });
  return out;
}

at::Tensor project_input_gradient(const std::vector<at::Tensor>& d, at::TensorList weights,
                                  bool transposed) {
  at::Tensor out;
  AT_DISPATCH_FLOATING_TYPES(weights[0].scalar_type(), "project_backward",
                             [&] { out = input_gradient<scalar_t>(d, weights, transposed); });
  return out;
}

at::Tensor project_weight_gradient(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out;
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "project_backward",
                             [&] { out = weight_gradient<scalar_t>(a, b); });
  return out;
}

}  // namespace translution
