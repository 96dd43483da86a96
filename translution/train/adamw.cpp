#include "translution/train/adamw.h"

#include <ATen/Dispatch.h>
#include <torch/library.h>
#include <torch/utils.h>

#include <cmath>

#include "translution/kernels/row_ops.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"

namespace translution {
namespace {

// Pieces of fixed size, so that sums do not depend on the number of threads.
constexpr int64_t kPiece = 1 << 16;

template <typename Work>
void for_pieces(int64_t count, const Work& work) {
  parallel_each((count + kPiece - 1) / kPiece, [&] {
    return [&](int64_t piece) {
      work(piece, piece * kPiece, std::min(kPiece, count - piece * kPiece));
    };
  });
}

double sum_squares(const torch::Tensor& gradient) {
  std::vector<double> sums((gradient.numel() + kPiece - 1) / kPiece);
  AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "gradient_norm", [&] {
    const auto* data = gradient.data_ptr<scalar_t>();
    for_pieces(gradient.numel(), [&](int64_t piece, int64_t first, int64_t count) {
      sums[piece] = kernels::row_ops<scalar_t>().sum_squares(data + first, count);
    });
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void check_parameter(const torch::Tensor& parameter) {
  TORCH_CHECK(parameter.is_contiguous() && parameter.device().is_cpu(),
              "AdamW: wanted contiguous parameters on the CPU, got one of shape ",
              parameter.sizes(), " on ", parameter.device());
}

template <typename T>
kernels::AdamWStep<T> make_step(const AdamWOptions& o, int64_t steps, bool decays, double scale) {
  const double lr = o.lr;
  return {static_cast<T>(lr / (1 - std::pow(o.beta1, steps))),
          static_cast<T>(decays ? 1 - lr * o.weight_decay : 1),
          static_cast<T>(o.beta1),
          static_cast<T>(o.beta2),
          static_cast<T>(1 / (1 - std::pow(o.beta2, steps))),
          static_cast<T>(o.epsilon),
          static_cast<T>(scale)};
}

}  // namespace

double gradient_norm(const std::vector<torch::Tensor>& parameters) {
  double total = 0;
  for (const auto& parameter : parameters)
    if (parameter.grad().defined()) total += sum_squares(parameter.grad().contiguous());
  return std::sqrt(total);
}

void adamw_update(const AdamWOptions& options, int64_t steps, double scale,
                  const torch::Tensor& gradient, torch::Tensor& parameter, torch::Tensor& first,
                  torch::Tensor& second) {
  const auto dense = gradient.contiguous();
  AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "AdamW", [&] {
    const auto step = make_step<scalar_t>(options, steps, parameter.dim() > 1, scale);
    for_pieces(parameter.numel(), [&](int64_t, int64_t begin, int64_t count) {
      kernels::row_ops<scalar_t>().adamw(
          step, dense.data_ptr<scalar_t>() + begin, count, parameter.data_ptr<scalar_t>() + begin,
          first.data_ptr<scalar_t>() + begin, second.data_ptr<scalar_t>() + begin);
    });
  });
}

AdamW::AdamW(std::vector<torch::Tensor> parameters, AdamWOptions o)
    : options(o), parameters_(std::move(parameters)) {
  for (const auto& parameter : parameters_) {
    check_parameter(parameter);
    const auto plain = parameter.options().requires_grad(false);
    state.first.push_back(large_zeros(parameter.sizes(), plain));
    state.second.push_back(large_zeros(parameter.sizes(), plain));
  }
}

double AdamW::step(double clip) {
  torch::NoGradGuard no_grad;
  const double norm = gradient_norm(parameters_);
  if (!std::isfinite(norm)) return norm;
  const double scale = clip > 0 && norm > clip ? clip / norm : 1.0;
  ++state.steps;
  for (size_t p = 0; p < parameters_.size(); ++p)
    if (parameters_[p].grad().defined())
      adamw_update(options, state.steps, scale, parameters_[p].grad(), parameters_[p],
                   state.first[p], state.second[p]);
  return norm;
}

void AdamW::zero_grad() {
  for (auto& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
}

namespace {

double gradient_norm_op(at::TensorList gradients) {
  double total = 0;
  for (const auto& gradient : gradients) total += sum_squares(gradient.contiguous());
  return std::sqrt(total);
}

void check_alike(const char* what, const torch::Tensor& tensor, const torch::Tensor& parameter) {
  TORCH_CHECK(tensor.sizes() == parameter.sizes() &&
                  tensor.scalar_type() == parameter.scalar_type() && tensor.device().is_cpu(),
              "AdamW: wanted a ", what, " like its parameter, ", parameter.scalar_type(), " ",
              parameter.sizes(), ", got ", tensor.scalar_type(), " ", tensor.sizes());
}

void adamw_op(at::TensorList parameters, at::TensorList gradients, at::TensorList first,
              at::TensorList second, int64_t steps, double lr, double beta1, double beta2,
              double epsilon, double weight_decay, double scale) {
  torch::NoGradGuard no_grad;
  const size_t count = parameters.size();
  TORCH_CHECK(gradients.size() == count && first.size() == count && second.size() == count,
              "AdamW: wanted a gradient and two moments for each of ", count, " parameters");
  for (size_t p = 0; p < count; ++p) {
    torch::Tensor parameter = parameters[p], m = first[p], v = second[p];
    check_parameter(parameter);
    check_alike("gradient", gradients[p], parameter);
    for (const auto& moment : {m, v}) {
      check_alike("moment", moment, parameter);
      check_parameter(moment);
    }
    adamw_update({lr, beta1, beta2, epsilon, weight_decay}, steps, scale, gradients[p], parameter,
                 m, v);
    parameter.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def("gradient_norm(Tensor[] gradients) -> float", gradient_norm_op);
  m.def(
      "adamw_(Tensor(a!)[] parameters, Tensor[] gradients, Tensor(b!)[] first, "
      "Tensor(c!)[] second, int steps, float lr, float beta1, float beta2, float epsilon, "
      "float weight_decay, float scale=1.) -> ()",
      adamw_op);
}

}  // namespace translution
