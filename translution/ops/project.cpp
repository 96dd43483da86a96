#include "translution/ops/project.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "translution/ops/check.h"
#include "translution/ops/compat.h"
#include "translution/ops/fixed_sum.h"
#include "translution/ops/implementation.h"
#include "translution/ops/project_cpu.h"

namespace translution {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Tensors = std::vector<at::Tensor>;
using Forward = Tensors(const at::Tensor&, at::TensorList, at::TensorList, bool);
using Backward = Tensors(const OptionalTensorList&, const at::Tensor&, at::TensorList, bool,
                         int64_t);

constexpr const char* kOp = "project";
// Which gradients backward is asked for: of x, and of weight w in bit w + 1.
constexpr int64_t kNeedsX = 1;
int64_t needs_weight(size_t w) { return int64_t{2} << w; }
// Of the gradients of one call, all or none: a bit each is more than a number has beyond this.
constexpr size_t kMostWeights = 16;

void check_project(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                   bool transposed) {
  TORCH_CHECK(x.dim() > 0, kOp, ": x must be [..., in], got ", x.sizes());
  TORCH_CHECK(!weights.empty() && weights.size() <= kMostWeights, kOp, ": wanted 1 to ",
              kMostWeights, " weights, got ", weights.size());
  TORCH_CHECK(biases.empty() || biases.size() == weights.size(), kOp,
              ": wanted no bias or one for each weight, got ", biases.size(), " for ",
              weights.size(), " weights");
  Checker check(kOp);
  check.tensor("x", x, x.dim(), "[..., in]");
  for (size_t w = 0; w < weights.size(); ++w) {
    check.tensor("weight", weights[w], 2, transposed ? "[out, in]" : "[in, out]");
    check.size("weight", weights[w], transposed ? 1 : 0, x.size(-1), "the channels of x");
    if (biases.empty()) continue;
    check.tensor("bias", biases[w], 1, "[out]");
    check.size("bias", biases[w], 0, weights[w].size(transposed ? 0 : 1),
               "the width of the weight");
  }
}

bool fused(const at::Tensor& x) {
  return x.device().is_cpu() && kernels_wanted() && x.numel() > 0 &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

at::Tensor as_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}).contiguous(); }

// [rows,out] -> the shape of x with `out` channels.
at::Tensor like_x(const at::Tensor& rows, const at::Tensor& x) {
  auto sizes = x.sizes().vec();
  sizes.back() = rows.size(1);
  return rows.view(sizes);
}

Tensors forward_any(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                    bool transposed) {
  check_project(x, weights, biases, transposed);
  Tensors out;
  if (fused(x)) {
    for (const auto& rows : project_fused(as_rows(x), weights, biases, transposed))
      out.push_back(like_x(rows, x));
    return out;
  }
  for (size_t w = 0; w < weights.size(); ++w) {
    const auto product = at::matmul(x, transposed ? weights[w].t() : weights[w]);
    out.push_back(biases.empty() ? product : product + biases[w]);
  }
  return out;
}

Tensors forward_meta(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                     bool transposed) {
  check_project(x, weights, biases, transposed);
  Tensors out;
  for (const auto& weight : weights) {
    auto sizes = x.sizes().vec();
    sizes.back() = weight.size(transposed ? 0 : 1);
    out.push_back(at::empty(sizes, x.options()));
  }
  return out;
}

// Gradients of x and of each weight; empty tensors for those not asked for. The sums over d that
// are the gradients of the biases need no op.
Tensors backward_any(const OptionalTensorList& d_list, const at::Tensor& x, at::TensorList weights,
                     bool transposed, int64_t needs) {
  Tensors d, grads(1 + weights.size(), at::empty({0}, x.options()));
  for (size_t w = 0; w < weights.size(); ++w) {
    const auto given = value_or_undefined(d_list.get(w));
    d.push_back(given.defined() ? as_rows(given) : given);
  }
  const bool kernels = fused(x);
  if (needs & kNeedsX) {
    at::Tensor dx;
    if (kernels) dx = project_input_gradient(d, weights, transposed);
    for (size_t w = 0; w < weights.size() && !kernels; ++w) {
      if (!d[w].defined()) continue;
      const auto part = d[w].mm(transposed ? weights[w] : weights[w].t());
      dx = dx.defined() ? dx + part : part;
    }
    grads[0] = dx.view(x.sizes());
  }
  const auto rows = as_rows(x);
  for (size_t w = 0; w < weights.size(); ++w) {
    if (!(needs & needs_weight(w)) || !d[w].defined()) continue;
    const auto &a = transposed ? d[w] : rows, &b = transposed ? rows : d[w];
    grads[1 + w] = kernels ? project_weight_gradient(a, b) : a.t().mm(b);
  }
  return grads;
}

Tensors backward_meta(const OptionalTensorList&, const at::Tensor& x, at::TensorList weights, bool,
                      int64_t needs) {
  Tensors grads(1 + weights.size(), at::empty({0}, x.options()));
  if (needs & kNeedsX) grads[0] = at::empty_like(x);
  for (size_t w = 0; w < weights.size(); ++w)
    if (needs & needs_weight(w)) grads[1 + w] = at::empty_like(weights[w]);
  return grads;
}

Tensors call_forward(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                     bool transposed) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("translution::project", "").typed<Forward>();
  return op.call(x, weights, biases, transposed);
}

Tensors call_backward(const OptionalTensorList& d, const at::Tensor& x, at::TensorList weights,
                      bool transposed, int64_t needs) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("translution::project_backward", "")
                             .typed<Backward>();
  return op.call(d, x, weights, transposed, needs);
}

class ProjectFunction : public torch::autograd::Function<ProjectFunction> {
 public:
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, at::TensorList weights,
                               at::TensorList biases, bool transposed) {
    at::AutoDispatchBelowADInplaceOrView guard;
    variable_list saved = {x};
    saved.insert(saved.end(), weights.begin(), weights.end());
    ctx->save_for_backward(saved);
    ctx->set_materialize_grads(false);
    ctx->saved_data["transposed"] = transposed;
    ctx->saved_data["biases"] = static_cast<int64_t>(biases.size());
    return call_forward(x, weights, biases, transposed);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d) {
    const auto saved = ctx->get_saved_variables();
    const Tensors weights(saved.begin() + 1, saved.end());
    OptionalTensorList d_list;
    bool any = false;
    for (const auto& given : d) {
      d_list.push_back(optional(given));
      any = any || given.defined();
    }
    const auto biases = static_cast<size_t>(ctx->saved_data["biases"].toInt());
    variable_list grads(1 + weights.size() + biases + 1);
    if (!any) return grads;
    int64_t needs = ctx->needs_input_grad(0) ? kNeedsX : 0;
    for (size_t w = 0; w < weights.size(); ++w)
      if (d[w].defined() && ctx->needs_input_grad(1 + w)) needs |= needs_weight(w);
    const auto found =
        call_backward(d_list, saved[0], weights, ctx->saved_data["transposed"].toBool(), needs);
    if (needs & kNeedsX) grads[0] = found[0];
    for (size_t w = 0; w < weights.size(); ++w)
      if (needs & needs_weight(w)) grads[1 + w] = found[1 + w];
    for (size_t b = 0; b < biases; ++b)
      if (d[b].defined() && ctx->needs_input_grad(1 + weights.size() + b))
        grads[1 + weights.size() + b] = fixed_sum(as_rows(d[b]));
    return grads;
  }
};

Tensors forward_autograd(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                         bool transposed) {
  return ProjectFunction::apply(x, weights, biases, transposed);
}

Tensors backward_autograd(const OptionalTensorList& d, const at::Tensor& x, at::TensorList weights,
                          bool transposed, int64_t needs) {
  Tensors inputs = {x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  for (size_t w = 0; w < d.size(); ++w) inputs.push_back(value_or_undefined(d.get(w)));
  refuse_second_derivative(kOp, inputs);
  at::AutoDispatchBelowADInplaceOrView guard;
  return call_backward(d, x, weights, transposed, needs);
}

}  // namespace

Tensors project(const at::Tensor& x, const Tensors& weights, const Tensors& biases,
                bool transposed) {
  // The dispatcher knows no undefined tensors.
  TORCH_CHECK(x.defined(), kOp, ": x [..., in] is missing");
  for (const auto& tensors : {weights, biases})
    for (const auto& tensor : tensors)
      TORCH_CHECK(tensor.defined(), kOp, ": a weight or bias is missing");
  return call_forward(x, weights, biases, transposed);
}

std::pair<at::Tensor, at::Tensor> project_gradients(const at::Tensor& d, const at::Tensor& x,
                                                    const at::Tensor& weight, bool wants_x,
                                                    bool wants_weight) {
  OptionalTensorList d_list;
  d_list.push_back(d);
  const auto found = call_backward(d_list, x, {weight}, /*transposed=*/false,
                                   (wants_x ? kNeedsX : 0) | (wants_weight ? needs_weight(0) : 0));
  return {wants_x ? found[0] : at::Tensor(), wants_weight ? found[1] : at::Tensor()};
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  m.def("project(Tensor x, Tensor[] weights, Tensor[] biases, bool transposed=False) -> Tensor[]");
  m.def(
      "project_backward(Tensor?[] d, Tensor x, Tensor[] weights, bool transposed, int needs) "
      "-> Tensor[]");
}
TORCH_LIBRARY_IMPL(translution, CompositeExplicitAutograd, m) {
  m.impl("project", forward_any);
  m.impl("project_backward", backward_any);
}
TORCH_LIBRARY_IMPL(translution, Meta, m) {
  m.impl("project", forward_meta);
  m.impl("project_backward", backward_meta);
}
TORCH_LIBRARY_IMPL(translution, Autograd, m) {
  m.impl("project", forward_autograd);
  m.impl("project_backward", backward_autograd);
}

}  // namespace translution
