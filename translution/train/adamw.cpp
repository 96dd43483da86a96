#include "translution/train/adamw.h"

#include <ATen/Dispatch.h>
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

AdamW::AdamW(std::vector<torch::Tensor> parameters, AdamWOptions o)
    : options(o), parameters_(std::move(parameters)) {
  for (const auto& parameter : parameters_) {
    TORCH_CHECK(parameter.is_contiguous() && parameter.device().is_cpu(),
                "AdamW: wanted contiguous parameters on the CPU, got one of shape ",
                parameter.sizes(), " on ", parameter.device());
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
  for (size_t p = 0; p < parameters_.size(); ++p) {
    auto& parameter = parameters_[p];
    if (!parameter.grad().defined()) continue;
    const auto gradient = parameter.grad().contiguous();
    AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "AdamW", [&] {
      const auto step = make_step<scalar_t>(options, state.steps, parameter.dim() > 1, scale);
      for_pieces(parameter.numel(), [&](int64_t, int64_t first, int64_t count) {
        kernels::row_ops<scalar_t>().adamw(step, gradient.data_ptr<scalar_t>() + first, count,
                                           parameter.data_ptr<scalar_t>() + first,
                                           state.first[p].data_ptr<scalar_t>() + first,
                                           state.second[p].data_ptr<scalar_t>() + first);
      });
    });
  }
  return norm;
}

void AdamW::zero_grad() {
  for (auto& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
}

}  // namespace translution
