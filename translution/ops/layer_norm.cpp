#include "translution/ops/layer_norm.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <algorithm>

#include "translution/kernels/row_ops.h"
#include "translution/ops/check.h"
#include "translution/ops/fixed_sum.h"
#include "translution/ops/large.h"
#include "translution/ops/parallel.h"
#include "translution/ops/register.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;
using NormGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // of x, weight, bias
using NormForward = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, double);
using NormBackward = NormGradients(const at::Tensor&, const at::Tensor&, const at::Tensor&, double);

constexpr const char* kNorm = "layer_norm";

void check_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  TORCH_CHECK(x.dim() > 0, kNorm, ": expected x [..., C], got ", x.sym_sizes());
  Checker check(kNorm);
  check.tensor("x", x, x.dim(), "[..., C]");
  check.tensor("weight", weight, 1, "[C]");
  check.size("weight", weight, 0, x.sym_size(-1), "the channels of x");
  check.tensor("bias", bias, 1, "[C]");
  check.size("bias", bias, 0, x.sym_size(-1), "the channels of x");
}

bool norm_is_fused(const at::Tensor& x) {
  return runtime().fused() && x.numel() > 0 &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

template <typename T>
void norm_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps,
               const at::Tensor& out) {
  constexpr int64_t kNumbers = 1 << 14;  // minimum work for a thread
  const int64_t n = x.size(-1), rows = x.numel() / n;
  parallel_ranges(rows, std::max<int64_t>(1, kNumbers / n), [&](int64_t begin, int64_t end) {
    kernels::row_ops<T>().layer_norm(x.data_ptr<T>() + begin * n, weight.data_ptr<T>(),
                                     bias.data_ptr<T>(), eps, end - begin, n,
                                     out.data_ptr<T>() + begin * n);
  });
}

// `sums` [shards,2,C] receives the gradients of weight and bias of each shard.
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

at::Tensor norm_portable(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         double eps) {
  check_norm(x, weight, bias);
  return at::layer_norm(x, weight.sizes(), weight, bias, eps);
}

at::Tensor norm_cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    double eps) {
  if (!norm_is_fused(x)) return norm_portable(x, weight, bias, eps);
  check_norm(x, weight, bias);
  const auto rows = x.contiguous(), w = weight.contiguous(), b = bias.contiguous();
  auto out = large_empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kNorm,
                             [&] { norm_rows<scalar_t>(rows, w, b, eps, out); });
  return out;
}

at::Tensor norm_meta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     double) {
  check_norm(x, weight, bias);
  return empty_of(x);
}

// Always computes all three gradients: those that are not needed cost little.
NormGradients norm_backward_portable(const at::Tensor& d, const at::Tensor& x,
                                     const at::Tensor& weight, double eps) {
  const auto stats = at::native_layer_norm(x, weight.sizes(), weight, weight, eps);
  return at::native_layer_norm_backward(d, x, weight.sizes(), std::get<1>(stats),
                                        std::get<2>(stats), weight, weight, {true, true, true});
}

NormGradients norm_backward_cpu(const at::Tensor& d, const at::Tensor& x, const at::Tensor& weight,
                                double eps) {
  if (!norm_is_fused(x)) return norm_backward_portable(d, x, weight, eps);
  const auto d_rows = d.contiguous(), rows = x.contiguous(), w = weight.contiguous();
  const Shards shards(x.numel() / x.size(-1), 2 * x.size(-1));
  auto dx = large_empty(x.sizes(), x.options());
  auto sums = at::zeros({shards.count, 2, x.size(-1)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), kNorm, [&] {
    norm_gradients<scalar_t>(d_rows, rows, w, eps, shards, dx, sums);
  });
  return {dx, sums[0][0].clone(), sums[0][1].clone()};
}

NormGradients norm_backward_meta(const at::Tensor&, const at::Tensor& x, const at::Tensor& weight,
                                 double) {
  return {empty_of(x), empty_of(weight), empty_of(weight)};
}

// LibTorch's own norm has wrong third derivatives: it takes mean and deviation as constants.
at::Tensor norm_plain(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps) {
  check_norm(x, weight, bias);
  const auto centered = x - x.mean(-1, /*keepdim=*/true);
  const auto variance = centered.square().mean(-1, /*keepdim=*/true);
  return centered * (variance + eps).rsqrt() * weight + bias;
}

NormGradients norm_backward_plain(const at::Tensor& d, const at::Tensor& x,
                                  const at::Tensor& weight, double eps) {
  const auto norm = [eps](const Tensors& t) { return Tensors{norm_plain(t[0], t[1], t[2], eps)}; };
  const auto bias = at::zeros_like(weight);  // any: gradients do not depend on it
  const auto grads = plain_gradients(norm, {x, weight, bias}, {d}, {true, true, true});
  return {grads[0], grads[1], grads[2]};
}

at::Tensor norm_autograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         double eps) {
  const Differentiable call(kNorm, {x, weight, bias});
  const auto out = call.below([&] { return layer_norm(x, weight, bias, eps); });
  call.finish({out}, {x, weight}, [eps](const BackwardCall& b) -> Tensors {
    static const Op<NormBackward> op("translution::layer_norm_backward");
    const auto [dx, dweight, dbias] = op(b.d[0], b.saved[0], b.saved[1], eps);
    return {dx, dweight, dbias};
  });
  return out;
}

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps) {
  static const Op<NormForward> op("translution::layer_norm");
  // The dispatcher does not accept undefined tensors.
  TORCH_CHECK(x.defined(), kNorm, ": x [..., C] is missing");
  TORCH_CHECK(weight.defined() && bias.defined(), kNorm, ": weight [C] or bias [C] is missing");
  return op(x, weight, bias, eps);
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<NormForward>(
      m, "layer_norm(Tensor x, Tensor weight, Tensor bias, float eps=1e-05) -> Tensor",
      {norm_portable, norm_cpu, norm_meta, norm_autograd, norm_plain});
  register_op<NormBackward>(m,
                            "layer_norm_backward(Tensor d, Tensor x, Tensor weight, float eps) "
                            "-> (Tensor, Tensor, Tensor)",
                            {norm_backward_portable, norm_backward_cpu, norm_backward_meta, nullptr,
                             norm_backward_plain});
}

}  // namespace translution
