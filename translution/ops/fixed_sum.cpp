#include "translution/ops/fixed_sum.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <algorithm>

#include "translution/kernels/row_ops.h"
#include "translution/ops/parallel.h"
#include "translution/ops/register.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;
using SumFirst = at::Tensor(const at::Tensor& x);
using AddShared = at::Tensor(const at::Tensor& x, const at::Tensor& shared);

constexpr int64_t kSumColumns = 4096;  // columns that one thread sums at a time

int64_t ceil_div(int64_t count, int64_t divisor) { return (count + divisor - 1) / divisor; }

// Sums `columns` columns of x [rows,width] from column `first` on, for one shard.
template <typename T>
void sum_shard(const T* x, int64_t rows, int64_t width, int64_t first, int64_t columns, T* sum) {
  std::fill_n(sum + first, columns, T(0));
  for (int64_t row = 0; row < rows; ++row)
    kernels::row_ops<T>().add(x + row * width + first, columns, sum + first);
}

template <typename T>
at::Tensor sum_in_shards(const at::Tensor& x, int64_t width) {
  const int64_t rows = x.size(0), column_blocks = ceil_div(width, kSumColumns);
  const Shards shards(rows, width);
  const auto sums = at::empty({shards.count, width}, x.options());
  parallel_each(shards.count * column_blocks, [&] {
    return [&](int64_t piece) {
      const int64_t shard = piece / column_blocks, first = piece % column_blocks * kSumColumns;
      const int64_t row = shard * shards.length;
      sum_shard(x.data_ptr<T>() + row * width, std::clamp<int64_t>(rows - row, 0, shards.length),
                width, first, std::min(kSumColumns, width - first),
                sums.data_ptr<T>() + shard * width);
    };
  });
  merge_shards(sums.data_ptr<T>(), shards.count, width);
  return shards.count == 1 ? sums[0] : sums[0].clone();  // free the other shards
}

at::Tensor sum_portable(const at::Tensor& x) { return x.sum(0).contiguous(); }

at::Tensor sum_cpu(const at::Tensor& x) {
  const bool floats = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  if (!floats || !runtime().fused() || x.numel() == 0) return sum_portable(x);
  const auto dense = x.contiguous();
  at::Tensor sum;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sum_first", [&] {
    sum = sum_in_shards<scalar_t>(dense, dense.numel() / dense.size(0));
  });
  return sum.view(x.sizes().slice(1));
}

at::Tensor sum_meta(const at::Tensor& x) {
  return at::empty_symint(x.sym_sizes().slice(1), x.options());
}

at::Tensor sum_autograd(const at::Tensor& x) {
  const Differentiable call("sum_first", {x});
  const auto sum = call.below([&] { return sum_first(x); });
  call.finish({sum}, {}, [rows = x.sym_size(0)](const BackwardCall& b) -> Tensors {
    auto sizes = b.d[0].sym_sizes().vec();
    sizes.insert(sizes.begin(), rows);
    return {b.d[0].unsqueeze(0).expand_symint(sizes)};
  });
  return sum;
}

void check_shared(const at::Tensor& x, const at::Tensor& shared) {
  TORCH_CHECK(x.dim() > 0 && x.sym_sizes().slice(1) == shared.sym_sizes(),
              "add_shared: expected shared to have the shape of one sample of x ", x.sym_sizes(),
              ", got ", shared.sym_sizes());
}

at::Tensor add_portable(const at::Tensor& x, const at::Tensor& shared) {
  check_shared(x, shared);
  return (x + shared).contiguous();
}

at::Tensor add_meta(const at::Tensor& x, const at::Tensor& shared) {
  check_shared(x, shared);
  return at::empty_symint(x.sym_sizes(), x.options().dtype(at::result_type(x, shared)));
}

at::Tensor add_autograd(const at::Tensor& x, const at::Tensor& shared) {
  const Differentiable call("add_shared", {x, shared});
  const auto sum = call.below([&] { return add_shared(x, shared); });
  call.finish({sum}, {}, [](const BackwardCall& b) -> Tensors {
    return {b.needs[0] ? b.d[0] : at::Tensor(), b.needs[1] ? sum_first(b.d[0]) : at::Tensor()};
  });
  return sum;
}

}  // namespace

Shards::Shards(int64_t rows, int64_t width) {
  constexpr int64_t kMaxShards = 64, kMinRows = 32, kNumbers = 1 << 20;
  const int64_t max_by_memory = std::max<int64_t>(1, kNumbers / std::max<int64_t>(1, width));
  count = std::clamp<int64_t>(rows / kMinRows, 1, std::min(kMaxShards, max_by_memory));
  length = ceil_div(rows, count);
}

template <typename T>
void merge_shards(T* sums, int64_t count, int64_t width) {
  if (count == 1) return;
  parallel_ranges(width, 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t shard = 1; shard < count; ++shard)
      kernels::row_ops<T>().add(sums + shard * width + begin, end - begin, sums + begin);
  });
}

template void merge_shards<float>(float*, int64_t, int64_t);
template void merge_shards<double>(double*, int64_t, int64_t);

at::Tensor sum_first(const at::Tensor& x) {
  static const Op<SumFirst> op("translution::sum_first");
  TORCH_CHECK(x.defined() && x.dim() > 0, "sum_first: expected x [rows, ...], got ",
              x.defined() ? "a single number" : "no tensor");
  return op(x);
}

at::Tensor add_shared(const at::Tensor& x, const at::Tensor& shared) {
  TORCH_CHECK(x.defined() && shared.defined(), "add_shared: expected x and shared, got ",
              x.defined() ? "no shared" : "no x");
  static const Op<AddShared> op("translution::add_shared");
  return op(x, shared);
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<SumFirst>(m, "sum_first(Tensor x) -> Tensor",
                        {sum_portable, sum_cpu, sum_meta, sum_autograd, sum_portable});
  register_op<AddShared>(m, "add_shared(Tensor x, Tensor shared) -> Tensor",
                         {add_portable, nullptr, add_meta, add_autograd, add_portable});
}

}  // namespace translution
