#include "translution/ops/project.h"

#include <ATen/ATen.h>

#include "translution/ops/check.h"
#include "translution/ops/fixed_sum.h"
#include "translution/ops/project_fused.h"
#include "translution/ops/register.h"
#include "translution/ops/rounding.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;
using ProjectForward = Tensors(const at::Tensor&, at::TensorList, at::TensorList, bool,
                               const std::string&);
using ProjectBackward = Tensors(const OptionalTensorList&, const at::Tensor&, at::TensorList, bool,
                                int64_t, const std::string&);

constexpr const char* kProject = "project";
// Bits of `needs`, the gradients that backward computes: bit 0 for x, bit w + 1 for weight w.
constexpr int64_t kNeedsInput = 1;
int64_t needs_weight(size_t w) { return int64_t{2} << w; }
// `needs` holds one bit per weight; 16 keeps it far from overflow.
constexpr size_t kMaxWeights = 16;

Precision precision_of(const std::string& name) {
  return parse_name("precision", kPrecisions, name);
}

void check_project(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                   bool transposed, const std::string& precision) {
  TORCH_CHECK(x.dim() > 0, kProject, ": x must be [..., in], got ", x.sym_sizes());
  TORCH_CHECK(!weights.empty() && weights.size() <= kMaxWeights, kProject, ": expected 1 to ",
              kMaxWeights, " weights, got ", weights.size());
  TORCH_CHECK(biases.empty() || biases.size() == weights.size(), kProject,
              ": expected no bias or one for each weight, got ", biases.size(), " for ",
              weights.size(), " weights");
  Checker check(kProject, precision_of(precision));
  check.tensor("x", x, x.dim(), "[..., in]");
  for (size_t w = 0; w < weights.size(); ++w) {
    check.tensor("weight", weights[w], 2, transposed ? "[out, in]" : "[in, out]");
    check.size("weight", weights[w], transposed ? 1 : 0, x.sym_size(-1), "the channels of x");
    if (biases.empty()) continue;
    check.tensor("bias", biases[w], 1, "[out]");
    check.size("bias", biases[w], 0, weights[w].sym_size(transposed ? 0 : 1),
               "the width of the weight");
  }
}

bool project_is_fused(const at::Tensor& x) {
  return runtime().fused() && x.numel() > 0 && x.scalar_type() != at::kHalf;
}

at::Tensor as_rows(const at::Tensor& x) {
  return x.reshape_symint({-1, x.sym_size(-1)}).contiguous();
}

// Views [rows,out] in the shape of x with `out` channels.
at::Tensor like_x(const at::Tensor& rows, const at::Tensor& x) {
  auto sizes = x.sizes().vec();
  sizes.back() = rows.size(1);
  return rows.view(sizes);
}

// x as an operand of a plain LibTorch product.
at::Tensor operand_portable(const at::Tensor& x, bool bf16) { return bf16 ? rounded(x) : x; }

Tensors project_portable(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                         bool transposed, const std::string& precision) {
  check_project(x, weights, biases, transposed, precision);
  const bool bf16 = multiplies_bf16(precision_of(precision), x);
  const auto left = operand_portable(x, bf16);
  Tensors out;
  for (size_t w = 0; w < weights.size(); ++w) {
    const auto right = operand_portable(weights[w], bf16);
    auto product = at::matmul(left, transposed ? right.t() : right);
    if (!biases.empty()) product = product + biases[w];
    out.push_back(product.to(x.scalar_type()));
  }
  return out;
}

Tensors project_cpu(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                    bool transposed, const std::string& precision) {
  if (!project_is_fused(x)) return project_portable(x, weights, biases, transposed, precision);
  check_project(x, weights, biases, transposed, precision);
  const bool bf16 = multiplies_bf16(precision_of(precision), x);
  Tensors out;
  for (const auto& rows :
       project_fused(bf16 ? to_bf16(as_rows(x)) : as_rows(x), weights, biases, transposed))
    out.push_back(like_x(rows.to(x.scalar_type()), x));
  return out;
}

Tensors project_meta(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                     bool transposed, const std::string& precision) {
  check_project(x, weights, biases, transposed, precision);
  Tensors out;
  for (const auto& weight : weights) {
    auto sizes = x.sym_sizes().vec();
    sizes.back() = weight.sym_size(transposed ? 0 : 1);
    out.push_back(at::empty_symint(sizes, x.options()));
  }
  return out;
}

// The gradient of x, [R,in]: the sum over w of d[w] [R,out] times the transpose of weight w.
at::Tensor input_gradient_portable(const Tensors& d, at::TensorList weights, bool transposed,
                                   bool bf16) {
  at::Tensor dx;
  for (size_t w = 0; w < weights.size(); ++w) {
    if (!d[w].defined()) continue;
    const auto right = operand_portable(weights[w], bf16);
    const auto part = d[w].mm(transposed ? right : right.t());
    dx = dx.defined() ? dx + part : part;
  }
  return dx;
}

at::Tensor weight_gradient_portable(const at::Tensor& a, const at::Tensor& b) {
  return a.t().mm(b);
}

at::Tensor operand_fused(const at::Tensor& x, bool bf16) { return bf16 ? to_bf16(x) : x; }

at::Tensor input_gradient_fused(const Tensors& d, at::TensorList weights, bool transposed, bool) {
  return project_input_gradient(d, weights, transposed);
}

// A tensor per gradient: results of an op must not share memory.
Tensors empty_gradients(const at::Tensor& x, at::TensorList weights) {
  Tensors grads;
  for (size_t g = 0; g <= weights.size(); ++g) grads.push_back(at::empty({0}, x.options()));
  return grads;
}

// Gradients of x and of each weight; empty tensors for those not requested. The gradients of the
// biases are sums over d, which project_gradients_of computes.
template <at::Tensor (*operand)(const at::Tensor&, bool),
          at::Tensor (*input_gradient)(const Tensors&, at::TensorList, bool, bool),
          at::Tensor (*weight_gradient)(const at::Tensor&, const at::Tensor&)>
Tensors project_backward(const OptionalTensorList& d_list, const at::Tensor& x,
                         at::TensorList weights, bool transposed, int64_t needs,
                         const std::string& precision) {
  const bool bf16 = multiplies_bf16(precision_of(precision), x);
  Tensors d, grads = empty_gradients(x, weights);
  for (size_t w = 0; w < weights.size(); ++w) {
    const auto given = value_or_undefined(d_list.get(w));
    d.push_back(given.defined() ? operand(as_rows(given), bf16) : given);
  }
  if (needs & kNeedsInput)
    grads[0] = input_gradient(d, weights, transposed, bf16).to(x.scalar_type()).reshape(x.sizes());
  const auto rows = needs & ~kNeedsInput ? operand(as_rows(x), bf16) : at::Tensor();
  for (size_t w = 0; w < weights.size(); ++w)
    if ((needs & needs_weight(w)) && d[w].defined())
      grads[1 + w] = (transposed ? weight_gradient(d[w], rows) : weight_gradient(rows, d[w]))
                         .to(weights[w].scalar_type());
  return grads;
}

constexpr ProjectBackward* project_backward_portable =
    project_backward<operand_portable, input_gradient_portable, weight_gradient_portable>;
constexpr ProjectBackward* project_backward_fused =
    project_backward<operand_fused, input_gradient_fused, project_weight_gradient>;

Tensors project_backward_cpu(const OptionalTensorList& d, const at::Tensor& x,
                             at::TensorList weights, bool transposed, int64_t needs,
                             const std::string& precision) {
  const auto backward = project_is_fused(x) ? project_backward_fused : project_backward_portable;
  return backward(d, x, weights, transposed, needs, precision);
}

Tensors project_backward_meta(const OptionalTensorList&, const at::Tensor& x,
                              at::TensorList weights, bool, int64_t needs, const std::string&) {
  Tensors grads = empty_gradients(x, weights);
  if (needs & kNeedsInput) grads[0] = empty_of(x);
  for (size_t w = 0; w < weights.size(); ++w)
    if (needs & needs_weight(w)) grads[1 + w] = empty_of(weights[w]);
  return grads;
}

Tensors call_project(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                     bool transposed, const std::string& precision) {
  static const Op<ProjectForward> op("translution::project");
  return op(x, weights, biases, transposed, precision);
}

Tensors call_project_backward(const OptionalTensorList& d, const at::Tensor& x,
                              at::TensorList weights, bool transposed, int64_t needs,
                              const std::string& precision) {
  static const Op<ProjectBackward> op("translution::project_backward");
  return op(d, x, weights, transposed, needs, precision);
}

// The gradients of x, weights and biases.
Tensors project_gradients_of(const BackwardCall& b, bool transposed, const std::string& precision) {
  const Tensors weights(b.saved.begin() + 1, b.saved.end());
  OptionalTensorList d;
  for (const auto& given : b.d) d.push_back(optional(given));
  int64_t needs = b.needs[0] ? kNeedsInput : 0;
  for (size_t w = 0; w < weights.size(); ++w)
    if (b.d[w].defined() && b.needs[1 + w]) needs |= needs_weight(w);
  const auto found = call_project_backward(d, b.saved[0], weights, transposed, needs, precision);
  Tensors grads(b.needs.size());
  if (needs & kNeedsInput) grads[0] = found[0];
  for (size_t w = 0; w < weights.size(); ++w)
    if (needs & needs_weight(w)) grads[1 + w] = found[1 + w];
  const size_t first_bias = 1 + weights.size();
  for (size_t i = first_bias; i < grads.size(); ++i) {
    const auto& given = b.d[i - first_bias];
    if (given.defined() && b.needs[i])
      grads[i] =
          sum_first(as_rows(given.scalar_type() == at::kBFloat16 ? given.to(at::kFloat) : given));
  }
  return grads;
}

Tensors project_autograd(const at::Tensor& x, at::TensorList weights, at::TensorList biases,
                         bool transposed, const std::string& precision) {
  Tensors inputs = {x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  const Tensors saved = inputs;
  inputs.insert(inputs.end(), biases.begin(), biases.end());
  const Differentiable call(kProject, inputs);
  const auto out =
      call.below([&] { return call_project(x, weights, biases, transposed, precision); });
  call.finish(out, saved, [transposed, precision](const BackwardCall& b) {
    return project_gradients_of(b, transposed, precision);
  });
  return out;
}

}  // namespace

Tensors project(const at::Tensor& x, const Tensors& weights, const Tensors& biases, bool transposed,
                Precision precision) {
  // The dispatcher does not accept undefined tensors.
  TORCH_CHECK(x.defined(), kProject, ": x [..., in] is missing");
  for (const auto& tensors : {weights, biases})
    for (const auto& tensor : tensors)
      TORCH_CHECK(tensor.defined(), kProject, ": a weight or bias is missing");
  return call_project(x, weights, biases, transposed, name_of(kPrecisions, precision));
}

std::pair<at::Tensor, at::Tensor> project_gradients(const at::Tensor& d, const at::Tensor& x,
                                                    const at::Tensor& weight, bool needs_dx,
                                                    bool needs_dweight, Precision precision) {
  OptionalTensorList d_list;
  d_list.push_back(d);
  const auto found =
      call_project_backward(d_list, x, {weight}, /*transposed=*/false,
                            (needs_dx ? kNeedsInput : 0) | (needs_dweight ? needs_weight(0) : 0),
                            name_of(kPrecisions, precision));
  return {needs_dx ? found[0] : at::Tensor(), needs_dweight ? found[1] : at::Tensor()};
}

TORCH_LIBRARY_FRAGMENT(translution, m) {
  register_op<ProjectForward>(
      m,
      "project(Tensor x, Tensor[] weights, Tensor[] biases, bool transposed=False, "
      "str precision='float32') -> Tensor[]",
      {project_portable, project_cpu, project_meta, project_autograd, project_portable});
  register_op<ProjectBackward>(
      m,
      "project_backward(Tensor?[] d, Tensor x, Tensor[] weights, bool transposed, int needs, "
      "str precision='float32') -> Tensor[]",
      {project_backward_portable, project_backward_cpu, project_backward_meta, nullptr,
       project_backward_portable});
}

}  // namespace translution
