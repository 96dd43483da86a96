#include "translution/ops/plain_form.h"

#include <ATen/ops/view_as.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <string>

#include "translution/ops/autograd.h"

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;

// Adds the tensors of a value to `tensors`.
void collect(const c10::IValue& value, Tensors& tensors) {
  if (value.isTensor()) tensors.push_back(value.toTensor());
  if (!value.isList()) return;
  for (const c10::IValue& item : value.toListRef()) collect(item, tensors);
}

Tensors last_tensors(const torch::jit::Stack& stack, size_t count) {
  Tensors tensors;
  for (const auto& value : torch::jit::last(stack, count)) collect(value, tensors);
  return tensors;
}

// The value with other tensors, which are taken in the order of `collect`.
c10::IValue with_tensors(const c10::IValue& value, Tensors::const_iterator& next) {
  if (value.isTensor()) return *next++;
  if (!value.isList()) return value;
  c10::impl::GenericList list(value.toList().elementType());
  for (const c10::IValue& item : value.toListRef()) list.push_back(with_tensors(item, next));
  return list;
}

torch::jit::Stack with_tensors(at::ArrayRef<c10::IValue> values, const Tensors& tensors) {
  torch::jit::Stack stack;
  auto next = tensors.begin();
  for (const auto& value : values) stack.push_back(with_tensors(value, next));
  return stack;
}

// "attention" of "translution::attention_backward"
std::string forward_name(const c10::OperatorHandle& op) {
  const std::string& full = op.schema().name();
  const size_t first = full.find("::") + 2;
  return full.substr(first, full.rfind("_backward") - first);
}

}  // namespace

bool has_tangent(const at::Tensor& x) { return x.defined() && x._fw_grad(/*level=*/0).defined(); }

bool has_tangent(const OptionalTensor& x) { return x.has_value() && has_tangent(*x); }

bool has_tangent(at::TensorList list) {
  return std::any_of(list.begin(), list.end(), [](const at::Tensor& x) { return has_tangent(x); });
}

bool has_tangent(const OptionalTensorList& list) {
  return std::any_of(list.begin(), list.end(),
                     [](const OptionalTensor& x) { return has_tangent(x); });
}

Tensors plain_gradients(const std::function<Tensors(const Tensors&)>& function,
                        const Tensors& inputs, const Tensors& d, const std::vector<bool>& needs) {
  const bool create_graph = at::GradMode::is_enabled();
  const at::AutoGradMode recording(true);
  // Gradients end at views of the inputs: one input may have been computed from another.
  Tensors views = inputs, leaves, outputs, d_outputs, gradients(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!needs[i] || !inputs[i].defined()) continue;
    views[i] = inputs[i].view_as(inputs[i]);
    if (!views[i].requires_grad()) views[i].set_requires_grad(true);
    leaves.push_back(views[i]);
  }
  const auto results = function(views);
  for (size_t o = 0; o < results.size(); ++o) {
    if (!d[o].defined() || !results[o].requires_grad()) continue;
    outputs.push_back(results[o]);
    d_outputs.push_back(d[o]);
  }
  if (leaves.empty() || outputs.empty()) return gradients;
  const auto found = torch::autograd::grad(outputs, leaves, d_outputs, create_graph, create_graph,
                                           /*allow_unused=*/true);
  auto next = found.begin();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (needs[i] && inputs[i].defined()) gradients[i] = *next++;
  return gradients;
}

void BackwardKernel::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                                torch::jit::Stack* stack) const {
  const size_t count = op.schema().arguments().size();
  const auto tensors = last_tensors(*stack, count);
  if (plain_.isValid() && has_tangent(at::TensorList(tensors)))
    return plain_.callBoxed(op, keys, stack);
  const std::string name = forward_name(op);
  const Differentiable call(name, tensors);
  if (!call.recorded()) return call.below([&] { return op.callBoxed(stack); });
  // The graph holds the tensors, so that a change in place is noticed.
  const auto arguments = with_tensors(torch::jit::last(*stack, count), Tensors(tensors.size()));
  call.below([&] { return op.callBoxed(stack); });
  const auto second_derivative = [=, plain = plain_](const BackwardCall& b) {
    TORCH_CHECK(plain.isValid(), name,
                ": second derivatives are not available; use plain PyTorch instead (in Python "
                "translution.ReferenceAttention)");
    const auto function = [&](const Tensors& given) {
      auto values = with_tensors(arguments, given);
      plain.callBoxed(op, {}, &values);
      return last_tensors(values, values.size());
    };
    return plain_gradients(function, b.saved, b.d, b.needs);
  };
  call.finish(last_tensors(*stack, op.schema().returns().size()),
              plain_.isValid() ? tensors : Tensors(), second_derivative);
}

}  // namespace translution
