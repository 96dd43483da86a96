#include "translution/ops/adamw_step.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <cmath>

#include "translution/kernels/bf16.h"
#include "translution/kernels/row_ops.h"
#include "translution/ops/packed_weights.h"
#include "translution/ops/parallel.h"
#include "translution/ops/register.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

using NormOp = at::Tensor(at::TensorList gradients);
using StepOp = void(at::TensorList parameters, at::TensorList gradients, at::TensorList first,
                    at::TensorList second, int64_t steps, double lr, double beta1, double beta2,
                    double epsilon, double weight_decay, double scale, bool decay_vectors);

// Pieces have a fixed size, so that sums do not depend on the number of threads.
constexpr int64_t kPiece = 1 << 16;

template <typename Work>
void for_pieces(int64_t count, const Work& work) {
  parallel_each((count + kPiece - 1) / kPiece, [&] {
    return [&](int64_t piece) {
      work(piece, piece * kPiece, std::min(kPiece, count - piece * kPiece));
    };
  });
}

bool is_fused(const at::Tensor& x) {
  return runtime().fused() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

double sum_squares_portable(const at::Tensor& gradient) {
  const bool has_double = !gradient.is_mps();
  return (has_double ? gradient.to(at::kDouble) : gradient).square().sum().item<double>();
}

double sum_squares_cpu(const at::Tensor& given) {
  if (!is_fused(given)) return sum_squares_portable(given);
  const auto gradient = given.contiguous();
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

template <double (*sum_squares)(const at::Tensor&)>
at::Tensor norm_op(at::TensorList gradients) {
  double total = 0;
  for (const auto& gradient : gradients) total += sum_squares(gradient);
  return at::scalar_tensor(std::sqrt(total), at::kDouble);
}

at::Tensor norm_meta(at::TensorList gradients) {
  return at::empty({}, gradients[0].options().dtype(at::kDouble));
}

bool decays(const AdamWOptions& o, const at::Tensor& parameter) {
  return o.decay_vectors || parameter.dim() > 1;
}

// Updates one parameter and its moments, and bumps the version of the parameter.
using Update = void(const AdamWOptions& options, int64_t steps, double scale,
                    const at::Tensor& gradient, at::Tensor& parameter, at::Tensor& first,
                    at::Tensor& second);

void update_portable(const AdamWOptions& o, int64_t steps, double scale, const at::Tensor& gradient,
                     at::Tensor& parameter, at::Tensor& first, at::Tensor& second) {
  const auto g = gradient * scale;
  if (decays(o, parameter)) parameter.mul_(1 - o.lr * o.weight_decay);
  first.mul_(o.beta1).add_(g, 1 - o.beta1);
  second.mul_(o.beta2).addcmul_(g, g, 1 - o.beta2);
  const auto deviation = (second / (1 - std::pow(o.beta2, steps))).sqrt_().add_(o.epsilon);
  parameter.addcdiv_(first, deviation, -o.lr / (1 - std::pow(o.beta1, steps)));
}

template <typename T>
kernels::AdamWStep<T> make_step(const AdamWOptions& o, int64_t steps, const at::Tensor& parameter,
                                double scale) {
  return {static_cast<T>(o.lr / (1 - std::pow(o.beta1, steps))),
          static_cast<T>(decays(o, parameter) ? 1 - o.lr * o.weight_decay : 1),
          static_cast<T>(o.beta1),
          static_cast<T>(o.beta2),
          static_cast<T>(1 - o.beta1),
          static_cast<T>(1 - o.beta2),
          static_cast<T>(1 / (1 - std::pow(o.beta2, steps))),
          static_cast<T>(o.epsilon),
          static_cast<T>(scale)};
}

// Updates a parameter that has packed copies for bfloat16 products. Packs each band of rows while
// it is in cache.
void update_packed(const kernels::AdamWStep<float>& step, const PackedCopies& copies,
                   const at::Tensor& gradient, at::Tensor& parameter, at::Tensor& first,
                   at::Tensor& second) {
  const int64_t k = parameter.size(-2), n = parameter.size(-1);
  const int64_t max_rows = std::max(kernels::kTileDepth, kPiece / n);
  const int64_t length = max_rows / kernels::kTileDepth * kernels::kTileDepth;  // rows of a band
  const int64_t bands = (k + length - 1) / length;
  parallel_each(parameter.numel() / (k * n) * bands, [&] {
    return [&](int64_t piece) {
      const int64_t matrix = piece / bands, row = piece % bands * length;
      const int64_t count = std::min(length, k - row), begin = (matrix * k + row) * n;
      kernels::row_ops<float>().adamw(
          step, gradient.data_ptr<float>() + begin, count * n, parameter.data_ptr<float>() + begin,
          first.data_ptr<float>() + begin, second.data_ptr<float>() + begin);
      for (const bool transposed : {false, true}) {
        const auto& tiles = transposed ? copies.transposed : copies.straight;
        if (tiles.defined())
          kernels::pack_band(
              parameter.data_ptr<float>() + matrix * k * n, row, count, k, n, transposed,
              static_cast<kernels::Bf16*>(tiles.data_ptr()) + matrix * tiles.size(1));
      }
    };
  });
}

void update_cpu(const AdamWOptions& options, int64_t steps, double scale,
                const at::Tensor& gradient, at::Tensor& parameter, at::Tensor& first,
                at::Tensor& second) {
  const bool dense_memory =
      parameter.is_contiguous() && first.is_contiguous() && second.is_contiguous();
  if (!is_fused(parameter) || !dense_memory)
    return update_portable(options, steps, scale, gradient, parameter, first, second);
  const auto dense = gradient.contiguous();
  const auto copies = copies_to_update(parameter);
  if (copies.straight.defined() || copies.transposed.defined()) {
    update_packed(make_step<float>(options, steps, parameter, scale), copies, dense, parameter,
                  first, second);
    parameter.unsafeGetTensorImpl()->bump_version();
    return copies_are_current(parameter);
  }
  AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "AdamW", [&] {
    const auto step = make_step<scalar_t>(options, steps, parameter, scale);
    for_pieces(parameter.numel(), [&](int64_t, int64_t begin, int64_t count) {
      kernels::row_ops<scalar_t>().adamw(
          step, dense.data_ptr<scalar_t>() + begin, count, parameter.data_ptr<scalar_t>() + begin,
          first.data_ptr<scalar_t>() + begin, second.data_ptr<scalar_t>() + begin);
    });
  });
  parameter.unsafeGetTensorImpl()->bump_version();
}

void check_alike(const char* what, const at::Tensor& tensor, const at::Tensor& parameter) {
  TORCH_CHECK(tensor.sym_sizes() == parameter.sym_sizes() &&
                  tensor.scalar_type() == parameter.scalar_type() &&
                  tensor.device() == parameter.device(),
              "AdamW: expected a ", what, " like its parameter, ", parameter.scalar_type(), " ",
              parameter.sym_sizes(), ", got ", tensor.scalar_type(), " ", tensor.sym_sizes());
}

template <Update update>
void step_op(at::TensorList parameters, at::TensorList gradients, at::TensorList first,
             at::TensorList second, int64_t steps, double lr, double beta1, double beta2,
             double epsilon, double weight_decay, double scale, bool decay_vectors) {
  const at::NoGradGuard no_grad;
  const size_t count = parameters.size();
  TORCH_CHECK(gradients.size() == count && first.size() == count && second.size() == count,
              "AdamW: expected a gradient and two moments for each of ", count, " parameters");
  for (size_t p = 0; p < count; ++p) {
    at::Tensor parameter = parameters[p], m = first[p], v = second[p];
    TORCH_CHECK(parameter.is_floating_point(), "AdamW: expected floating-point parameters, got ",
                parameter.scalar_type());
    check_alike("gradient", gradients[p], parameter);
    for (const auto& moment : {m, v}) check_alike("moment", moment, parameter);
    update({lr, beta1, beta2, epsilon, weight_decay, decay_vectors}, steps, scale, gradients[p],
           parameter, m, v);
  }
}

}  // namespace

double gradient_norm(at::TensorList gradients) {
  static const Op<NormOp> op("translution::gradient_norm");
  return gradients.empty() ? 0 : op(gradients).item<double>();  // the dispatcher needs a tensor
}

void adamw_step(const AdamWOptions& o, int64_t steps, double scale, at::TensorList parameters,
                at::TensorList gradients, at::TensorList first, at::TensorList second) {
  static const Op<StepOp> op("translution::adamw_");
  if (parameters.empty()) return;
  op(parameters, gradients, first, second, steps, o.lr, o.beta1, o.beta2, o.epsilon, o.weight_decay,
     scale, o.decay_vectors);
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def("gradient_norm(Tensor[] gradients) -> Tensor");
  m.def(
      "adamw_(Tensor(a!)[] parameters, Tensor[] gradients, Tensor(b!)[] first, "
      "Tensor(c!)[] second, int steps, float lr, float beta1, float beta2, float epsilon, "
      "float weight_decay, float scale=1., bool decay_vectors=False) -> ()");
}
TORCH_LIBRARY_IMPL(translution, CompositeExplicitAutograd, m) {
  m.impl("gradient_norm", norm_op<sum_squares_portable>);
  m.impl("adamw_", step_op<update_portable>);
}
TORCH_LIBRARY_IMPL(translution, Meta, m) { m.impl("gradient_norm", norm_meta); }
TORCH_LIBRARY_IMPL(translution, CPU, m) {
  m.impl("gradient_norm", norm_op<sum_squares_cpu>);
  m.impl("adamw_", step_op<update_cpu>);
}

}  // namespace translution
