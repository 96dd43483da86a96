#include "translution/ops/layer_norm.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>

#include "translution/kernels/row_ops.h"
#include "translution/ops/check.h"
#include "translution/ops/compat.h"
#include "translution/ops/fixed_sum.h"
#include "translution/ops/implementation.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"

namespace translution {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using NormGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // of x, weight, bias
using NormForward = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, double);
using NormBackward = NormGradients(const at::Tensor&, const at::Tensor&, const at::Tensor&, double);

constexpr const char* kNorm = "layer_norm";

void check_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  TORCH_CHECK(x.dim() > 0, kNorm, ": expected x [..., C], got ", x.sizes());
  Checker check(kNorm);
  check.tensor("x", x, x.dim(), "[..., C]");
  check.tensor("weight", weight, 1, "[C]");
  check.size("weight", weight, 0, x.size(-1), "the channels of x");
  check.tensor("bias", bias, 1, "[C]");
  check.size("bias", bias, 0, x.size(-1), "the channels of x");
}

bool norm_is_fused(const at::Tensor& x) {
  return x.device().is_cpu() && kernels_wanted() && x.numel() > 0 &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

template <typename T>
void norm_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps,
               const at::Tensor& out) {
  constexpr int64_t kNumbers = 1 << 14;  // that are worth a thread
  const int64_t n = x.size(-1), rows = x.numel() / n;
  at::parallel_for(0, rows, std::max<int64_t>(1, kNumbers / n), [&](int64_t begin, int64_t end) {
    kernels::row_ops<T>().layer_norm(x.data_ptr<T>() + begin * n, weight.data_ptr<T>(),
                                     bias.data_ptr<T>(), eps, end - begin, n,
                                     out.data_ptr<T>() + begin * n);
  });
}

// `sums` has room for the gradients of weight and bias of each shard: [shards,2,C].
template <typename T>
void norm_gradients(const at::Tensor& d, const at::Tensor& x, const at::Tensor& weight, double eps,
                    const Shards& shards, const at::Tensor& dx, const at::Tensor& sums) {
  const int64_t n = x.size(-1), rows = x.numel() / n;
  parallel_each(shards.count, [&] {
    return [&](int64_t shard) {
      T* const own = sums.data_ptr<T>() + shard * 2 * n;
      const int64_t row = shard * shards.length;
      kernels::row_ops<T>().layer_norm_backward(
          d.data_ptr<T>() + row * n, x.data_ptr<T>() + row * n, weight.data_ptr<T>(), eps,
          std::clamp<int64_t>(rows - row, 0, shards.length), n, dx.data_ptr<T>() + row * n, own,
          own + n);
    };
  });
  merge_shards(sums.data_ptr<T>(), shards.count, 2 * n);
}

at::Tensor norm_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        double eps) {
  check_norm(x, weight, bias);
  if (!norm_is_fused(x)) return at::layer_norm(x, weight.sizes(), weight, bias, eps);
  const auto rows = x.contiguous(), w = weight.contiguous(), b = bias.contiguous();
  auto out = large_empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kNorm,
                             [&] { norm_rows<scalar_t>(rows, w, b, eps, out); });
  return out;
}

at::Tensor norm_forward_meta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             double) {
  check_norm(x, weight, bias);
  return at::empty(x.sizes(), x.options());
}

// All three at once: those that are not wanted cost little.
NormGradients norm_backward(const at::Tensor& d, const at::Tensor& x, const at::Tensor& weight,
                            double eps) {
  if (!norm_is_fused(x)) {
    const auto stats = at::native_layer_norm(x, weight.sizes(), weight, weight, eps);
    return at::native_layer_norm_backward(d, x, weight.sizes(), std::get<1>(stats),
                                          std::get<2>(stats), weight, weight, {true, true, true});
  }
  const auto above = d.contiguous(), rows = x.contiguous(), w = weight.contiguous();
  const Shards shards(x.numel() / x.size(-1), 2 * x.size(-1));
  auto dx = large_empty(x.sizes(), x.options());
  auto sums = at::zeros({shards.count, 2, x.size(-1)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kNorm, [&] {
    norm_gradients<scalar_t>(above, rows, w, eps, shards, dx, sums);
  });
  return {dx, sums[0][0].clone(), sums[0][1].clone()};
}

NormGradients norm_backward_meta(const at::Tensor&, const at::Tensor& x, const at::Tensor& weight,
                                 double) {
  return {at::empty(x.sizes(), x.options()), at::empty(weight.sizes(), weight.options()),
          at::empty(weight.sizes(), weight.options())};
}

at::Tensor call_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     double eps) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("translution::layer_norm", "")
                             .typed<NormForward>();
  return op.call(x, weight, bias, eps);
}

NormGradients call_norm_backward(const at::Tensor& d, const at::Tensor& x, const at::Tensor& weight,
                                 double eps) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("translution::layer_norm_backward", "")
                             .typed<NormBackward>();
  return op.call(d, x, weight, eps);
}

class LayerNormFunction : public torch::autograd::Function<LayerNormFunction> {
 public:
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, double eps) {
    at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({x, weight});
    ctx->saved_data["eps"] = eps;
    return call_norm(x, weight, bias, eps);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d) {
    const auto saved = ctx->get_saved_variables();
    const auto [dx, dweight, dbias] =
        call_norm_backward(d[0], saved[0], saved[1], ctx->saved_data["eps"].toDouble());
    return {dx, dweight, dbias, at::Tensor()};
  }
};

at::Tensor norm_autograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         double eps) {
  return LayerNormFunction::apply(x, weight, bias, eps);
}

NormGradients norm_backward_autograd(const at::Tensor& d, const at::Tensor& x,
                                     const at::Tensor& weight, double eps) {
  refuse_second_derivative(kNorm, {d, x, weight});
  at::AutoDispatchBelowADInplaceOrView guard;
  return call_norm_backward(d, x, weight, eps);
}

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps) {
  // The dispatcher knows no undefined tensors.
  TORCH_CHECK(x.defined(), kNorm, ": x [..., C] is missing");
  TORCH_CHECK(weight.defined() && bias.defined(), kNorm, ": weight [C] or bias [C] is missing");
  return call_norm(x, weight, bias, eps);
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def("layer_norm(Tensor x, Tensor weight, Tensor bias, float eps=1e-05) -> Tensor");
  m.def(
      "layer_norm_backward(Tensor d, Tensor x, Tensor weight, float eps) "
      "-> (Tensor, Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(translution, CompositeExplicitAutograd, m) {
  m.impl("layer_norm", norm_forward);
  m.impl("layer_norm_backward", norm_backward);
}
TORCH_LIBRARY_IMPL(translution, Meta, m) {
  m.impl("layer_norm", norm_forward_meta);
  m.impl("layer_norm_backward", norm_backward_meta);
}
TORCH_LIBRARY_IMPL(translution, Autograd, m) {
  m.impl("layer_norm", norm_autograd);
  m.impl("layer_norm_backward", norm_backward_autograd);
}

}  // namespace translution
