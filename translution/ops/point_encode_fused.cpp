#include "translution/ops/point_encode_fused.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "translution/kernels/bf16.h"
#include "translution/kernels/gemm.h"
#include "translution/kernels/row_ops.h"
#include "translution/ops/fixed_sum.h"
#include "translution/ops/large.h"
#include "translution/ops/packed_weights.h"
#include "translution/ops/parallel.h"

namespace translution {
namespace {

using kernels::Bf16;

constexpr int64_t kBlockRows = 256;  // of a product

// The type of results, for operands of type T.
template <typename T>
using Sum = std::conditional_t<std::is_same_v<T, Bf16>, float, T>;

template <typename T>
const T* numbers(const at::Tensor& x) {
  return static_cast<const T*>(x.data_ptr());
}

// Rows first[m] … first[m + 1] - 1 belong to matrix m; their tokens ascend.
struct RowsBySlot {
  RowsBySlot(const at::Tensor& tokens, const at::Tensor& first)
      : slots(first.numel() - 1),
        tokens(tokens.data_ptr<int64_t>()),
        first(first.data_ptr<int64_t>()) {}
  // The first row of a slot whose token is `token` or a later one.
  int64_t row_of(int64_t slot, int64_t token) const {
    return std::lower_bound(tokens + first[slot], tokens + first[slot + 1], token) - tokens;
  }
  const int64_t slots;
  const int64_t *const tokens, *const first;
};

// Rows [begin, end) of a matrix: the same slot's, at most kBlockRows.
struct RowBlock {
  int64_t slot, begin, end;
};

std::vector<RowBlock> blocks_of(const RowsBySlot& rows) {
  std::vector<RowBlock> blocks;
  for (int64_t slot = 0; slot < rows.slots; ++slot)
    for (int64_t begin = rows.first[slot]; begin < rows.first[slot + 1]; begin += kBlockRows)
      blocks.push_back({slot, begin, std::min(rows.first[slot + 1], begin + kBlockRows)});
  return blocks;
}

// The rows of x [R,width] for some tokens: in place if they are consecutive, otherwise copied.
template <typename T>
const T* gather(const T* x, int64_t width, const int64_t* tokens, int64_t count,
                std::vector<T>& buffer) {
  if (tokens[count - 1] - tokens[0] == count - 1) return x + tokens[0] * width;
  buffer.resize(count * width);
  for (int64_t r = 0; r < count; ++r)
    std::memcpy(buffer.data() + r * width, x + tokens[r] * width, width * sizeof(T));
  return buffer.data();
}

template <typename T>
at::Tensor transposed(const at::Tensor& table) {
  const int64_t rows = table.size(1), columns = table.size(2);
  auto out = large_empty({table.size(0), columns, rows}, table.options());
  const T* const from = numbers<T>(table);
  T* const to = out.template data_ptr<T>();
  parallel_ranges(table.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot)
      kernels::row_ops<T>().transpose(from + slot * rows * columns, rows, columns, columns, 1, 0,
                                      to + slot * rows * columns, rows);
  });
  return out;
}

// The matrices of a table [M,in,out] as right-hand sides of products, one object per thread; and
// the gradients of the matrices.
template <typename T>
class Matrices {
 public:
  Matrices(const at::Tensor& table, bool transpose, bool /*forward*/)
      : in(table.size(transpose ? 2 : 1)),
        out(table.size(transpose ? 1 : 2)),
        table_(transpose ? transposed<T>(table) : table) {}

  // to [rows,out] (+)= x [rows,in] times the matrix of a slot
  void multiply(int64_t slot, int64_t rows, const T* x, bool accumulate, T* to) {
    kernels::gemm<T>(false, false, rows, out, in, x, in, numbers<T>(table_) + slot * in * out, out,
                     accumulate, to, out);
  }
  // to [k,n] (+)= x^T d for rows of x [rows,k] and d [rows,n]
  static void multiply_transposed(int64_t rows, int64_t k, int64_t n, const T* x, const T* d,
                                  bool accumulate, T* to) {
    kernels::gemm<T>(true, false, k, n, rows, x, k, d, n, accumulate, to, n);
  }

  int64_t in, out;

 private:
  at::Tensor table_;
};

template <>
class Matrices<Bf16> {
 public:
  Matrices(const at::Tensor& table, bool transpose, bool forward)
      : in(table.size(transpose ? 2 : 1)),
        out(table.size(transpose ? 1 : 2)),
        tiles_(packed_weight(table, transpose, forward)) {
    if (!tiles_.defined()) tiles_ = pack_weight(table, transpose);
  }
  Matrices(const Matrices& other) : in(other.in), out(other.out), tiles_(other.tiles_) {}

  void multiply(int64_t slot, int64_t rows, const Bf16* x, bool accumulate, float* to) {
    const kernels::PackedMatrix matrix(numbers<Bf16>(tiles_) + slot * kernels::packed_size(in, out),
                                       in, out);
    products_.multiply(rows, x, in, matrix, accumulate, to, out);
  }
  void multiply_transposed(int64_t rows, int64_t k, int64_t n, const Bf16* x, const Bf16* d,
                           bool accumulate, float* to) {
    products_.weight_gradient(rows, k, n, x, k, d, n, accumulate, to, n);
  }

  int64_t in, out;

 private:
  at::Tensor tiles_;
  kernels::Bf16Products products_;
};

template <typename T>
at::TensorOptions sum_options(const at::Tensor& x) {
  return std::is_same_v<T, Bf16> ? x.options().dtype(at::kFloat) : x.options();
}

template <typename T>
at::Tensor encode(const at::Tensor& x, const at::Tensor& table, const at::Tensor& tokens,
                  const at::Tensor& first) {
  const RowsBySlot rows(tokens, first);
  const Matrices<T> matrices(table, /*transpose=*/false, /*forward=*/true);
  auto out = large_empty({tokens.numel(), matrices.out}, sum_options<T>(x));
  Sum<T>* const to = out.template data_ptr<Sum<T>>();
  const auto blocks = blocks_of(rows);
  parallel_each(static_cast<int64_t>(blocks.size()), [&] {
    return [&, own = matrices, buffer = std::vector<T>()](int64_t b) mutable {
      const auto [slot, begin, end] = blocks[b];
      const T* const left = gather(numbers<T>(x), own.in, rows.tokens + begin, end - begin, buffer);
      own.multiply(slot, end - begin, left, false, to + begin * own.out);
    };
  });
  return out;
}

// Each thread takes a block of tokens, and adds the products of all slots in order.
template <typename T>
at::Tensor input_gradient(const at::Tensor& d, const at::Tensor& table, const at::Tensor& tokens,
                          const at::Tensor& first, int64_t tokens_in_all) {
  const RowsBySlot rows(tokens, first);
  const Matrices<T> matrices(table, /*transpose=*/true, /*forward=*/false);
  const int64_t C = matrices.out, W = matrices.in;
  auto dx = at::zeros({tokens_in_all, C}, sum_options<T>(d));
  Sum<T>* const to = dx.template data_ptr<Sum<T>>();
  parallel_each((tokens_in_all + kBlockRows - 1) / kBlockRows, [&] {
    return [&, own = matrices, product = std::vector<Sum<T>>(kBlockRows * C)](int64_t b) mutable {
      for (int64_t slot = 0; slot < rows.slots; ++slot) {
        const int64_t begin = rows.row_of(slot, b * kBlockRows),
                      count = rows.row_of(slot, (b + 1) * kBlockRows) - begin;
        if (count == 0) continue;
        const int64_t* const of = rows.tokens + begin;
        const T* const left = numbers<T>(d) + begin * W;
        if (of[count - 1] - of[0] == count - 1) {  // consecutive
          own.multiply(slot, count, left, true, to + of[0] * C);
          continue;
        }
        own.multiply(slot, count, left, false, product.data());
        for (int64_t r = 0; r < count; ++r)
          kernels::row_ops<Sum<T>>().add(product.data() + r * C, C, to + of[r] * C);
      }
    };
  });
  return dx;
}

// Few slots are summed in several parts, so that there is work for all threads. Their number
// depends on the sizes only.
template <typename T>
at::Tensor table_gradient(const at::Tensor& d, const at::Tensor& x, const at::Tensor& tokens,
                          const at::Tensor& first) {
  constexpr int64_t kTasks = 32, kMinRows = 512;
  const RowsBySlot rows(tokens, first);
  const int64_t M = rows.slots, C = x.size(1), W = d.size(1), size = C * W;
  const int64_t parts = std::clamp<int64_t>(tokens.numel() / (std::max<int64_t>(1, M) * kMinRows),
                                            1, std::max<int64_t>(1, kTasks / M));
  auto sums = large_empty({parts, M, C, W}, sum_options<T>(d));
  Sum<T>* const to = sums.template data_ptr<Sum<T>>();
  const Matrices<T> none(at::empty({0, C, W}, sum_options<T>(d)), false, false);
  parallel_each(parts * M, [&] {
    return [&, own = none, buffer = std::vector<T>()](int64_t task) mutable {
      const int64_t slot = task % M, part = task / M;
      const int64_t count = rows.first[slot + 1] - rows.first[slot], length = count / parts + 1;
      const int64_t begin = rows.first[slot] + std::min(count, part * length),
                    end = rows.first[slot] + std::min(count, (part + 1) * length);
      Sum<T>* const sum = to + task * size;
      if (begin == end) std::fill_n(sum, size, Sum<T>(0));
      for (int64_t row = begin; row < end; row += kMinRows) {
        const int64_t some = std::min(kMinRows, end - row);
        const T* const left = gather(numbers<T>(x), C, rows.tokens + row, some, buffer);
        own.multiply_transposed(some, C, W, left, numbers<T>(d) + row * W, row > begin, sum);
      }
    };
  });
  merge_shards(to, parts, M * size);
  return parts == 1 ? sums[0] : sums[0].clone();
}

// Calls work(T()) with the element type T of x.
template <typename Work>
at::Tensor with_type(const at::Tensor& x, const Work& work) {
  if (x.scalar_type() == at::kBFloat16) return work(Bf16{});
  return x.scalar_type() == at::kFloat ? work(float{}) : work(double{});
}

}  // namespace

at::Tensor encode_fused(const at::Tensor& x, const at::Tensor& table, const at::Tensor& tokens,
                        const at::Tensor& first) {
  return with_type(x, [&](auto type) { return encode<decltype(type)>(x, table, tokens, first); });
}

at::Tensor encode_input_gradient(const at::Tensor& d, const at::Tensor& table,
                                 const at::Tensor& tokens, const at::Tensor& first,
                                 int64_t tokens_in_all) {
  return with_type(d, [&](auto type) {
    return input_gradient<decltype(type)>(d, table, tokens, first, tokens_in_all);
  });
}

at::Tensor encode_table_gradient(const at::Tensor& d, const at::Tensor& x, const at::Tensor& tokens,
                                 const at::Tensor& first) {
  return with_type(d,
                   [&](auto type) { return table_gradient<decltype(type)>(d, x, tokens, first); });
}

}  // namespace translution
