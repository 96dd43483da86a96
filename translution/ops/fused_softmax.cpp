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
template <typename T>
constexpr T kMasked = -std::numeric_limits<T>::infinity();  // score of a pair that does not attend

template <typename Work>
void for_rows(int64_t count, const Work& work) {
  parallel_ranges(count, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) work(row);
  });
}

// Returns `masked`: the bias of a row, 0 if it is null, and -infinity at padding. The scores of
// padding become 0, because they may be NaN.
template <typename T>
const T* mask_row(const bool* mask, const T* bias, int64_t n, T* scores, T* masked) {
  for (int64_t j = 0; j < n; ++j) {
    masked[j] = !mask[j] ? kMasked<T> : bias ? bias[j] : 0;
    if (!mask[j]) scores[j] = 0;
  }
  return masked;
}

}  // namespace

template <typename T>
FusedSoftmax<T>::FusedSoftmax(const FusedCall& call)
    : call_(call), mask_(contiguous(call.call.mask)) {
  if (!call.terms.gate.defined()) return;
  position_ = expand_slots(call.terms.position).unsqueeze(0);
  if (mask_.defined())
    position_ = position_.masked_fill(mask_.logical_not().unsqueeze(1).unsqueeze(1), kMasked<T>)
                    .contiguous();
  const auto& ops = kernels::row_ops<T>();
  const int64_t N = call.tokens;
  for_rows(position_.numel() / N,
           [&](int64_t row) { ops.softmax_row(data<T>(position_) + row * N, nullptr, N, 1); });
}

// The places of padding in the lanes of a query, which are [N, lanes].
template <typename T>
std::vector<int64_t> FusedSoftmax<T>::padded_lanes() const {
  std::vector<int64_t> places;
  if (!mask_.defined()) return places;
  const int64_t B = call_.batch, H = call_.heads;
  for (int64_t j = 0; j < call_.tokens; ++j)
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; !data<bool>(mask_)[b * call_.tokens + j] && h < H; ++h)
        places.push_back(j * B * H + (call_.batch_last ? h * B + b : b * H + h));
  return places;
}

template <typename T>
void FusedSoftmax<T>::on_lanes(at::Tensor& scores) const {
  const auto& ops = kernels::row_ops<T>();
  const int64_t N = call_.tokens, lanes = call_.lane_count();
  const auto padded = padded_lanes();
  parallel_ranges(call_.queries, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> scratch(2 * lanes);
    for (int64_t i = begin; i < end; ++i) {
      T* const scores_i = data<T>(scores) + i * N * lanes;
      for (const int64_t place : padded) scores_i[place] = kMasked<T>;
      ops.softmax_lanes(scores_i, call_.pairs->open().data() + i * N, N, lanes, scratch.data());
    }
  });
}

template <typename T>
void FusedSoftmax<T>::on_lanes_backward(const at::Tensor& p, at::Tensor& dp, bool own_pairs) const {
  const auto& ops = kernels::row_ops<T>();
  const int64_t N = call_.tokens, lanes = call_.lane_count();
  const auto dots = at::empty({call_.queries, lanes}, call_.options);
  const auto sum_row = [&](int64_t i) {
    ops.lane_dots(data<T>(p) + i * N * lanes, data<T>(dp) + i * N * lanes, N, lanes,
                  data<T>(dots) + i * lanes);
  };
  const auto finish_row = [&](int64_t i) {
    ops.softmax_lanes_backward(data<T>(p) + i * N * lanes, data<T>(dp) + i * N * lanes, N, lanes,
                               static_cast<T>(call_.call.scale), data<T>(dots) + i * lanes);
  };
  const auto for_queries = [&](const auto& work) {
    parallel_ranges(call_.queries, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) work(i);
    });
  };
  if (!own_pairs) return for_queries([&](int64_t i) { sum_row(i), finish_row(i); });
  for_queries(sum_row);
  call_.sums.add({dots});
  for_queries(finish_row);
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
        to[h * pairs + pair] = kMasked<T>;
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
  parallel_ranges(call_.batch * rows, kRows, [&](int64_t begin, int64_t end) {
    std::vector<T> masked(mask_.defined() ? N : 0);  // bias of a row with key padding
    for (int64_t row = begin; row < end; ++row) {
      T* const scores_i = data<T>(scores) + row * N;
      const T* bias_i = bias.defined() ? data<T>(bias) + row % rows * N : nullptr;
      if (mask_.defined())
        bias_i = mask_row(data<bool>(mask_) + row / rows * N, bias_i, N, scores_i, masked.data());
      ops.softmax_row(scores_i, bias_i, N, static_cast<T>(call_.call.scale));
    }
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
  const int64_t N = call_.tokens, position_rows = position_.numel() / N;
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
  // With key padding the positional attention differs between samples, so they are summed last.
  auto by_pair = (mask_.defined() ? d : sum_first(d)) * gate.view({-1, 1, 1});
  for_rows(position_.numel() / call_.tokens, [&](int64_t row) {
    ops.softmax_row_backward(data<T>(position_) + row * call_.tokens,
                             data<T>(by_pair) + row * call_.tokens, call_.tokens, 1);
  });
  grads[kPosition] =
      sum_by_slot(mask_.defined() ? sum_first(by_pair) : by_pair, call_.terms.position);
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
