#include "translution/ops/fused_softmax.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "translution/kernels/row_ops.h"
#include "translution/ops/fixed_sum.h"
#include "translution/ops/parallel.h"

namespace translution {
namespace {

constexpr int64_t kRows = 64;  // minimum number of map rows for a thread

template <typename Work>
void for_rows(int64_t count, const Work& work) {
  parallel_ranges(count, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) work(row);
  });
}

}  // namespace

template <typename T>
FusedSoftmax<T>::FusedSoftmax(const FusedCall& call) : call_(call) {
  if (!call.terms.gate.defined()) return;
  const auto& ops = kernels::row_ops<T>();
  const int64_t N = call.tokens;
  position_ = expand_slots(call.terms.position);
  for_rows(call.heads * call.queries,
           [&](int64_t row) { ops.softmax_row(data<T>(position_) + row * N, nullptr, N, 1); });
}

template <typename T>
void FusedSoftmax<T>::on_lanes(at::Tensor& scores) const {
  const auto& ops = kernels::row_ops<T>();
  const int64_t N = call_.tokens, lanes = call_.lane_count();
  parallel_ranges(call_.queries, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> scratch(2 * lanes);
    for (int64_t i = begin; i < end; ++i)
      ops.softmax_lanes(data<T>(scores) + i * N * lanes, call_.pairs->open().data() + i * N, N,
                        lanes, scratch.data());
  });
}

template <typename T>
void FusedSoftmax<T>::on_lanes_backward(const at::Tensor& p, at::Tensor& dp) const {
  const auto& ops = kernels::row_ops<T>();
  const int64_t N = call_.tokens, lanes = call_.lane_count();
  parallel_ranges(call_.queries, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> scratch(lanes);
    for (int64_t i = begin; i < end; ++i)
      ops.softmax_lanes_backward(data<T>(p) + i * N * lanes, data<T>(dp) + i * N * lanes, N, lanes,
                                 static_cast<T>(call_.call.scale), scratch.data());
  });
}

// Expands a table [M,H] to the pairs, [H,Nq,N]. Zeros without a table; -infinity for closed pairs.
template <typename T>
at::Tensor FusedSoftmax<T>::expand_slots(const at::Tensor& table) const {
  const int64_t H = call_.heads, pairs = call_.pair_count();
  auto numbers = at::zeros({H, call_.queries, call_.tokens}, call_.options);
  T* to = data<T>(numbers);
  const auto from = contiguous(table);
  for (int64_t h = 0; h < H; ++h)
    for (int64_t pair = 0; pair < pairs; ++pair)
      if (!call_.pairs->open()[pair])
        to[h * pairs + pair] = -std::numeric_limits<T>::infinity();
      else if (from.defined())
        to[h * pairs + pair] = data<T>(from)[call_.pairs->slots()[pair] * H + h];
  return numbers;
}

// The gradient of expand_slots: by_pair [H,Nq,N] -> [M,H].
template <typename T>
at::Tensor FusedSoftmax<T>::sum_by_slot(const at::Tensor& by_pair, const at::Tensor& table) const {
  const int64_t H = call_.heads, pairs = call_.pair_count();
  auto sums = at::zeros(table.sizes(), call_.options);
  for (int64_t h = 0; h < H; ++h)
    for (int64_t pair = 0; pair < pairs; ++pair)
      if (call_.pairs->open()[pair])
        data<T>(sums)[call_.pairs->slots()[pair] * H + h] += data<T>(by_pair)[h * pairs + pair];
  return sums;
}

template <typename T>
void FusedSoftmax<T>::on_maps(at::Tensor& scores) const {
  const auto& ops = kernels::row_ops<T>();
  const auto& table = call_.terms.bias;
  const auto bias =
      table.defined() || !call_.pairs->all_open() ? expand_slots(table) : at::Tensor();
  const int64_t N = call_.tokens, rows = call_.heads * call_.queries;
  for_rows(call_.batch * rows, [&](int64_t row) {
    ops.softmax_row(data<T>(scores) + row * N,
                    bias.defined() ? data<T>(bias) + row % rows * N : nullptr, N,
                    static_cast<T>(call_.call.scale));
  });
}

template <typename T>
at::Tensor FusedSoftmax<T>::gated(const at::Tensor& p) const {
  if (!call_.terms.gate.defined()) return p;
  const auto gate = at::sigmoid(call_.terms.gate).view({-1, 1, 1});
  return at::addcmul(gate * position_, p, 1 - gate);
}

// d . (position - p) for each row of the map.
template <typename T>
std::vector<T> FusedSoftmax<T>::gate_dots(const at::Tensor& p, const at::Tensor& d) const {
  const auto& ops = kernels::row_ops<T>();
  const int64_t N = call_.tokens, position_rows = call_.heads * call_.queries;
  std::vector<T> sums(call_.lane_count() * call_.queries);
  for_rows(static_cast<int64_t>(sums.size()), [&](int64_t row) {
    T own;
    ops.heads.dots(data<T>(d) + row * N, data<T>(p) + row * N, 1, 1, N, 1, &own);
    ops.heads.dots(data<T>(d) + row * N, data<T>(position_) + row % position_rows * N, 1, 1, N, 1,
                   &sums[row]);
    sums[row] -= own;
  });
  return sums;
}

// The gradients of gate and position, from the gradient d of the gated map.
template <typename T>
void FusedSoftmax<T>::gate_gradients(const at::Tensor& p, const at::Tensor& d,
                                     TermGradients& grads) const {
  const auto& ops = kernels::row_ops<T>();
  const auto gate = at::sigmoid(call_.terms.gate);
  if (call_.needs_grad(kGate)) {
    auto sums = at::zeros({call_.heads}, at::kDouble);  // d . (position - p), by head
    const auto by_row = gate_dots(p, d);
    for (size_t row = 0; row < by_row.size(); ++row)
      data<double>(sums)[row / call_.queries % call_.heads] += by_row[row];
    grads[kGate] = (sums * gate * (1 - gate)).to(call_.options);
  }
  if (!call_.needs_grad(kPosition)) return;
  auto by_pair = sum_first(d).mul_(gate.view({-1, 1, 1}));  // [H,Nq,N]
  for_rows(call_.heads * call_.queries, [&](int64_t row) {
    ops.softmax_row_backward(data<T>(position_) + row * call_.tokens,
                             data<T>(by_pair) + row * call_.tokens, call_.tokens, 1);
  });
  grads[kPosition] = sum_by_slot(by_pair, call_.terms.position);
}

template <typename T>
void FusedSoftmax<T>::on_maps_backward(const at::Tensor& p, at::Tensor& d,
                                       TermGradients& grads) const {
  const auto& ops = kernels::row_ops<T>();
  const auto& terms = call_.terms;
  // With a bias, the scale is applied last, because the bias is added to scaled scores.
  const double scale = terms.bias.defined() ? 1 : call_.call.scale;
  auto scales = at::full({call_.heads}, scale, call_.options);
  if (terms.gate.defined()) {
    gate_gradients(p, d, grads);
    scales.mul_(1 - at::sigmoid(terms.gate));
  }
  const int64_t N = call_.tokens;
  for_rows(call_.lane_count() * call_.queries, [&](int64_t row) {
    ops.softmax_row_backward(data<T>(p) + row * N, data<T>(d) + row * N, N,
                             data<T>(scales)[row / call_.queries % call_.heads]);
  });
  if (!terms.bias.defined()) return;
  if (call_.needs_grad(kBias)) grads[kBias] = sum_by_slot(sum_first(d), terms.bias);
  d.mul_(call_.call.scale);
}

template class FusedSoftmax<float>;
template class FusedSoftmax<double>;

}  // namespace translution
