#include "translution/ops/attention_softmax.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>

#include "translution/kernels/row_ops.h"
#include "translution/ops/runs.h"

namespace translution {
namespace {

constexpr int64_t kRows = 64;  // of a map, the least that one thread takes

// work(slot, pair) for each pair of each run.
template <typename Work>
void for_pairs(const at::Tensor& runs, int64_t tokens, const Work& work) {
  for (const Run& run : runs_from_tensor(runs))
    for (int64_t t = 0; t < run.length; ++t)
      work(run.slot, (run.i + t * run.di) * tokens + run.j + t * run.dj);
}

}  // namespace

template <typename T>
void FusedSoftmax<T>::on_lanes(at::Tensor& scores) const {
  const auto& ops = kernels::row_ops<T>();
  const int64_t N = call_.size.tokens, lanes = call_.lane_count();
  at::parallel_for(0, call_.size.queries, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> scratch(2 * lanes);
    for (int64_t i = begin; i < end; ++i)
      ops.softmax_lanes(data<T>(scores) + i * N * lanes, call_.open.data() + i * N, N, lanes,
                        scratch.data());
  });
}

template <typename T>
void FusedSoftmax<T>::on_lanes_backward(const at::Tensor& p, at::Tensor& dp) const {
  const auto& ops = kernels::row_ops<T>();
  const int64_t N = call_.size.tokens, lanes = call_.lane_count();
  at::parallel_for(0, call_.size.queries, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> scratch(lanes);
    for (int64_t i = begin; i < end; ++i)
      ops.softmax_lanes_backward(data<T>(p) + i * N * lanes, data<T>(dp) + i * N * lanes, N, lanes,
                                 static_cast<T>(call_.setting.scale), scratch.data());
  });
}

// A table [M,H], pair by pair: [H,Nq,N]; zeros without a table. -infinity for closed pairs.
template <typename T>
at::Tensor FusedSoftmax<T>::spread(const at::Tensor& table) const {
  const int64_t H = call_.size.heads, pairs = call_.pair_count();
  auto numbers = at::zeros({H, call_.size.queries, call_.size.tokens}, call_.options);
  T* to = data<T>(numbers);
  if (table.defined()) {
    const auto from = table.contiguous();
    for_pairs(call_.setting.runs, call_.size.tokens, [&](int64_t slot, int64_t pair) {
      for (int64_t h = 0; h < H; ++h) to[h * pairs + pair] = data<T>(from)[slot * H + h];
    });
  }
  for (int64_t h = 0; h < H; ++h)
    for (int64_t pair = 0; pair < pairs; ++pair)
      if (!call_.open[pair]) to[h * pairs + pair] = -std::numeric_limits<T>::infinity();
  return numbers;
}

// The gradient of a table that was spread: by_pair [H,Nq,N] -> [M,H].
template <typename T>
at::Tensor FusedSoftmax<T>::sum_by_slot(const at::Tensor& by_pair, const at::Tensor& table) const {
  const int64_t H = call_.size.heads, pairs = call_.pair_count();
  auto sums = at::zeros(table.sizes(), call_.options);
  for_pairs(call_.setting.runs, call_.size.tokens, [&](int64_t slot, int64_t pair) {
    for (int64_t h = 0; h < H; ++h)
      data<T>(sums)[slot * H + h] += data<T>(by_pair)[h * pairs + pair];
  });
  return sums;
}

template <typename T>
void FusedSoftmax<T>::on_maps(at::Tensor& scores) const {
  const auto& ops = kernels::row_ops<T>();
  const bool all_open = std::find(call_.open.begin(), call_.open.end(), 0) == call_.open.end();
  const auto& table = call_.terms.bias;
  const auto bias = table.defined() || !all_open ? spread(table) : at::Tensor();
  const int64_t N = call_.size.tokens, rows = call_.size.heads * call_.size.queries;
  at::parallel_for(0, call_.size.batch * rows, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      ops.softmax_row(data<T>(scores) + row * N,
                      bias.defined() ? data<T>(bias) + row % rows * N : nullptr, N,
                      static_cast<T>(call_.setting.scale));
  });
}

template <typename T>
void FusedSoftmax<T>::on_maps_backward(const at::Tensor& p, at::Tensor& dp,
                                       at::Tensor& dbias) const {
  const auto& ops = kernels::row_ops<T>();
  const int64_t N = call_.size.tokens;
  // With a bias the scale comes later: the bias was added to scaled scores.
  const bool bias = call_.terms.bias.defined();
  const T scale = bias ? 1 : static_cast<T>(call_.setting.scale);
  const int64_t rows = call_.lane_count() * call_.size.queries;
  at::parallel_for(0, rows, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      ops.softmax_row_backward(data<T>(p) + row * N, data<T>(dp) + row * N, N, scale);
  });
  if (!bias) return;
  if (call_.wants(kBias)) dbias = sum_by_slot(dp.sum(0), call_.terms.bias);
  dp.mul_(call_.setting.scale);
}

template class FusedSoftmax<float>;
template class FusedSoftmax<double>;

}  // namespace translution
