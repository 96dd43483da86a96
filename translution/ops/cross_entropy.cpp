#include "translution/ops/cross_entropy.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <algorithm>
#include <numeric>

#include "translution/kernels/row_ops.h"
#include "translution/ops/fixed_sum.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"
#include "translution/ops/register.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;
// Returns the loss and, for backward, log(sum(exp(x))) of each row.
using LossForward = std::tuple<at::Tensor, at::Tensor>(const at::Tensor& logits,
                                                       const at::Tensor& target, double smoothing);
using LossBackward = at::Tensor(const at::Tensor& d, const at::Tensor& logits,
                                const at::Tensor& target, const at::Tensor& log_sums,
                                double smoothing);

constexpr const char* kCrossEntropy = "cross_entropy";

bool loss_is_fused(const at::Tensor& logits) {
  return runtime().fused() && logits.numel() > 0 &&
         (logits.scalar_type() == at::kFloat || logits.scalar_type() == at::kDouble);
}

void check_loss(const at::Tensor& logits, const at::Tensor& target) {
  TORCH_CHECK(logits.dim() == 2 && at::isFloatingType(logits.scalar_type()), kCrossEntropy,
              ": expected floating-point logits [rows, classes], got ", logits.scalar_type(), " ",
              logits.sym_sizes());
  TORCH_CHECK(target.scalar_type() == at::kLong, kCrossEntropy,
              ": expected a target of int64 classes, got ", target.scalar_type());
  TORCH_CHECK(target.dim() == 1 && target.sym_size(0) == logits.sym_size(0), kCrossEntropy,
              ": expected a class for each of ", logits.sym_size(0),
              " rows, got a target of shape ", target.sym_sizes());
}

void check_classes(const at::Tensor& logits, const at::Tensor& target) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  const int64_t* const row_class = target.data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row)
    TORCH_CHECK(0 <= row_class[row] && row_class[row] < classes, kCrossEntropy,
                ": expected classes 0 to ", classes - 1, ", got ", row_class[row], " in row ", row);
}

// Calls work(row) for each row of the matrix, in parallel.
template <typename Work>
void for_rows(const at::Tensor& matrix, const Work& work) {
  constexpr int64_t kNumbers = 1 << 15;  // minimum work for a thread
  const int64_t grain = std::max<int64_t>(1, kNumbers / matrix.size(1));
  parallel_ranges(matrix.size(0), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) work(row);
  });
}

// Smoothing takes weight from the class of a row and spreads it over all classes:
//   loss = log sum exp(x) - (1 - smoothing) x[class] - smoothing mean(x)
template <typename T>
double mean_loss(const at::Tensor& logits, const at::Tensor& target, double smoothing,
                 const at::Tensor& log_sums) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  const T* const all = logits.data_ptr<T>();
  const int64_t* const row_class = target.data_ptr<int64_t>();
  T* const log_sum = log_sums.data_ptr<T>();
  std::vector<double> losses(rows);
  for_rows(logits, [&](int64_t row) {
    const T* const x = all + row * classes;
    log_sum[row] = kernels::row_ops<T>().log_sum_exp(x, classes);
    double target_logit = (1 - smoothing) * x[row_class[row]];
    if (smoothing > 0)
      target_logit +=
          smoothing * std::accumulate(x, x + classes, 0.0) / static_cast<double>(classes);
    losses[row] = log_sum[row] - target_logit;
  });
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(rows);
}

template <typename T>
void gradient(const at::Tensor& logits, const at::Tensor& target, const at::Tensor& log_sums,
              double smoothing, double scale, const at::Tensor& d_logits) {
  const int64_t classes = logits.size(1);
  const T* const all = logits.data_ptr<T>();
  const int64_t* const row_class = target.data_ptr<int64_t>();
  const T* const log_sum = log_sums.data_ptr<T>();
  T* const d = d_logits.data_ptr<T>();
  const T spread = static_cast<T>(smoothing / static_cast<double>(classes));
  for_rows(logits, [&](int64_t row) {
    kernels::row_ops<T>().softmax_minus(all + row * classes, log_sum[row], spread,
                                        static_cast<T>(scale), classes, d + row * classes);
    d[row * classes + row_class[row]] -= static_cast<T>(scale * (1 - smoothing));
  });
}

std::tuple<at::Tensor, at::Tensor> loss_portable(const at::Tensor& logits, const at::Tensor& target,
                                                 double smoothing) {
  check_loss(logits, target);
  const auto log_sums = at::logsumexp(logits, 1);
  auto losses = log_sums - logits.gather(1, target.unsqueeze(1)).squeeze(1) * (1 - smoothing);
  if (smoothing > 0) losses = losses - logits.mean(1) * smoothing;
  return {losses.mean(), log_sums};
}

std::tuple<at::Tensor, at::Tensor> loss_cpu(const at::Tensor& logits, const at::Tensor& target,
                                            double smoothing) {
  check_loss(logits, target);
  const auto rows = logits.contiguous(), classes = target.contiguous();
  check_classes(rows, classes);
  if (!loss_is_fused(logits)) return loss_portable(rows, classes, smoothing);
  const auto log_sums = at::empty({logits.size(0)}, logits.options());
  double loss = 0;
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), kCrossEntropy, [&] {
    loss = mean_loss<scalar_t>(rows, classes, smoothing, log_sums);
  });
  return {at::scalar_tensor(loss, logits.options()), log_sums};
}

std::tuple<at::Tensor, at::Tensor> loss_meta(const at::Tensor& logits, const at::Tensor& target,
                                             double) {
  check_loss(logits, target);
  return {at::empty({}, logits.options()),
          at::empty_symint({logits.sym_size(0)}, logits.options())};
}

at::Tensor loss_backward_portable(const at::Tensor& d, const at::Tensor& logits,
                                  const at::Tensor& target, const at::Tensor& log_sums,
                                  double smoothing) {
  auto grad = (logits - log_sums.unsqueeze(1)).exp_();
  if (smoothing > 0) grad.sub_(smoothing / static_cast<double>(logits.size(1)));
  const auto row_class = target.unsqueeze(1);
  grad.scatter_add_(1, row_class, at::full_like(row_class, smoothing - 1, grad.options()));
  return grad.mul_(d / logits.size(0)).contiguous();
}

at::Tensor loss_backward_cpu(const at::Tensor& d, const at::Tensor& logits,
                             const at::Tensor& target, const at::Tensor& log_sums,
                             double smoothing) {
  if (!loss_is_fused(logits)) return loss_backward_portable(d, logits, target, log_sums, smoothing);
  const double scale = d.item<double>() / static_cast<double>(logits.size(0));
  const auto rows = logits.contiguous(), classes = target.contiguous();
  auto d_logits = large_empty(logits.sizes(), logits.options());
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), kCrossEntropy, [&] {
    gradient<scalar_t>(rows, classes, log_sums, smoothing, scale, d_logits);
  });
  return d_logits;
}

at::Tensor loss_backward_meta(const at::Tensor&, const at::Tensor& logits, const at::Tensor&,
                              const at::Tensor&, double) {
  return empty_of(logits);
}

at::Tensor loss_backward_plain(const at::Tensor& d, const at::Tensor& logits,
                               const at::Tensor& target, const at::Tensor&, double smoothing) {
  const auto loss = [&](const Tensors& given) {
    return Tensors{std::get<0>(loss_portable(given[0], target, smoothing))};
  };
  return plain_gradients(loss, {logits}, {d}, {true})[0];
}

std::tuple<at::Tensor, at::Tensor> call_loss(const at::Tensor& logits, const at::Tensor& target,
                                             double smoothing) {
  static const Op<LossForward> op("translution::cross_entropy");
  return op(logits, target, smoothing);
}

std::tuple<at::Tensor, at::Tensor> loss_autograd(const at::Tensor& logits, const at::Tensor& target,
                                                 double smoothing) {
  const Differentiable call(kCrossEntropy, {logits});
  const auto result = call.below([&] { return call_loss(logits, target, smoothing); });
  const auto& [loss, log_sums] = result;
  call.finish({loss}, {logits, target, log_sums}, [smoothing](const BackwardCall& b) -> Tensors {
    static const Op<LossBackward> op("translution::cross_entropy_backward");
    return {op(b.d[0], b.saved[0], b.saved[1], b.saved[2], smoothing)};
  });
  return result;
}

// Sums each row first: LibTorch splits a sum over all numbers by the number of threads.
at::Tensor loss_of_probabilities(const at::Tensor& logits, const at::Tensor& target,
                                 double smoothing) {
  const auto classes = static_cast<double>(logits.size(1));
  const auto smoothed = smoothing > 0 ? target * (1 - smoothing) + smoothing / classes : target;
  return -sum_first((at::log_softmax(logits, 1) * smoothed).sum(1)) / logits.size(0);
}

}  // namespace

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                         double label_smoothing) {
  if (logits.dim() == 2 && logits.sizes() == target.sizes() &&
      at::isFloatingType(target.scalar_type()))
    return loss_of_probabilities(logits, target, label_smoothing);
  return std::get<0>(call_loss(logits, target, label_smoothing));
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<LossForward>(
      m, "cross_entropy(Tensor logits, Tensor target, float smoothing=0.) -> (Tensor, Tensor)",
      {loss_portable, loss_cpu, loss_meta, loss_autograd, loss_portable});
  register_op<LossBackward>(
      m,
      "cross_entropy_backward(Tensor d, Tensor logits, Tensor target, Tensor log_sums, "
      "float smoothing) -> Tensor",
      {loss_backward_portable, loss_backward_cpu, loss_backward_meta, nullptr,
       loss_backward_plain});
}

}  // namespace translution
