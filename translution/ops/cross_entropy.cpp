#include "translution/ops/cross_entropy.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Reduction.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <numeric>

#include "translution/kernels/row_ops.h"
#include "translution/ops/compat.h"
#include "translution/ops/fixed_sum.h"
#include "translution/ops/implementation.h"
#include "translution/ops/large.h"

namespace translution {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "cross_entropy";

bool fused(const at::Tensor& logits, const at::Tensor& target) {
  return logits.device().is_cpu() && target.device().is_cpu() && kernels_wanted() &&
         logits.dim() == 2 && logits.numel() > 0 && target.scalar_type() == at::kLong &&
         (logits.scalar_type() == at::kFloat || logits.scalar_type() == at::kDouble);
}

void check_classes(const at::Tensor& logits, const at::Tensor& target) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  TORCH_CHECK(target.dim() == 1 && target.size(0) == rows, kOp, ": wanted a class for each of ",
              rows, " rows, got a target of shape ", target.sizes());
  const int64_t* const of_row = target.data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row)
    TORCH_CHECK(0 <= of_row[row] && of_row[row] < classes, kOp, ": wanted classes 0 to ",
                classes - 1, ", got ", of_row[row], " in row ", row);
}

// work(row), for rows of a matrix.
template <typename Work>
void for_rows(const at::Tensor& matrix, const Work& work) {
  constexpr int64_t kNumbers = 1 << 15;  // that are worth a thread
  const int64_t grain = std::max<int64_t>(1, kNumbers / matrix.size(1));
  at::parallel_for(0, matrix.size(0), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) work(row);
  });
}

// What smoothing takes from the class of a row is spread over all classes:
//   loss = log sum exp(x) - (1 - smoothing) x[class] - smoothing mean(x)
template <typename T>
double mean_loss(const at::Tensor& logits, const at::Tensor& target, double smoothing,
                 const at::Tensor& log_sums) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  const T* const all = logits.data_ptr<T>();
  const int64_t* const of_row = target.data_ptr<int64_t>();
  T* const log_sum = log_sums.data_ptr<T>();
  std::vector<double> losses(rows);
  for_rows(logits, [&](int64_t row) {
    const T* const x = all + row * classes;
    log_sum[row] = kernels::row_ops<T>().log_sum_exp(x, classes);
    double aim = (1 - smoothing) * x[of_row[row]];
    if (smoothing > 0)
      aim += smoothing * std::accumulate(x, x + classes, 0.0) / static_cast<double>(classes);
    losses[row] = log_sum[row] - aim;
  });
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(rows);
}

template <typename T>
void gradient(const at::Tensor& logits, const at::Tensor& target, const at::Tensor& log_sums,
              double smoothing, double scale, const at::Tensor& d_logits) {
  const int64_t classes = logits.size(1);
  const T* const all = logits.data_ptr<T>();
  const int64_t* const of_row = target.data_ptr<int64_t>();
  const T* const log_sum = log_sums.data_ptr<T>();
  T* const d = d_logits.data_ptr<T>();
  const T spread = static_cast<T>(smoothing / static_cast<double>(classes));
  for_rows(logits, [&](int64_t row) {
    kernels::row_ops<T>().softmax_minus(all + row * classes, log_sum[row], spread,
                                        static_cast<T>(scale), classes, d + row * classes);
    d[row * classes + of_row[row]] -= static_cast<T>(scale * (1 - smoothing));
  });
}

class CrossEntropyFunction : public torch::autograd::Function<CrossEntropyFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits,
                            const at::Tensor& target, double smoothing) {
    const auto log_sums = at::empty({logits.size(0)}, logits.options());
    double loss = 0;
    AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), kOp, [&] {
      loss = mean_loss<scalar_t>(logits, target, smoothing, log_sums);
    });
    ctx->save_for_backward({logits, target, log_sums});
    ctx->saved_data["smoothing"] = smoothing;
    return at::scalar_tensor(loss, logits.options());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outputs) {
    const auto saved = ctx->get_saved_variables();
    const auto& logits = saved[0];
    refuse_second_derivative(kOp, {d_outputs[0], logits});
    const double scale = d_outputs[0].item<double>() / static_cast<double>(logits.size(0));
    const auto d_logits = large_empty(logits.sizes(), logits.options());
    AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), kOp, [&] {
      gradient<scalar_t>(logits, saved[1], saved[2], ctx->saved_data["smoothing"].toDouble(), scale,
                         d_logits);
    });
    return {d_logits, at::Tensor(), at::Tensor()};
  }
};

// A loss for each row first: a sum over all numbers at once is cut by the number of threads.
at::Tensor loss_of_shares(const at::Tensor& logits, const at::Tensor& target, double smoothing) {
  const auto classes = static_cast<double>(logits.size(1));
  const auto aim = smoothing > 0 ? target * (1 - smoothing) + smoothing / classes : target;
  return -sum_first((at::log_softmax(logits, 1) * aim).sum(1)) / logits.size(0);
}

}  // namespace

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                         double label_smoothing) {
  if (logits.dim() == 2 && logits.sizes() == target.sizes() &&
      at::isFloatingType(target.scalar_type()))
    return loss_of_shares(logits, target, label_smoothing);
  if (!fused(logits, target))
    return at::cross_entropy_loss(logits, target, {}, at::Reduction::Mean, -100, label_smoothing);
  const auto rows = logits.contiguous(), classes = target.contiguous();
  check_classes(rows, classes);
  return CrossEntropyFunction::apply(rows, classes, label_smoothing);
}

}  // namespace translution
