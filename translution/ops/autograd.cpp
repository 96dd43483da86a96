#include "translution/ops/autograd.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>

namespace translution {
namespace {

using Tensors = std::vector<at::Tensor>;
using torch::autograd::SavedVariable;

class GradientNode : public torch::autograd::Node {
 public:
  explicit GradientNode(const std::string& op) : name_("translution::" + op + "_backward") {}

  std::string name() const override { return name_; }

  void set(const Tensors& saved, BackwardFunction backward) {
    for (const auto& tensor : saved) saved_.emplace_back(tensor, is_output(tensor));
    backward_ = std::move(backward);
  }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& tensor : saved_) tensor.reset_data();
  }

 private:
  bool is_output(const at::Tensor& tensor) const {
    return tensor.defined() && tensor.grad_fn().get() == this;
  }

  Tensors apply(Tensors&& d) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool any = std::any_of(d.begin(), d.end(), [](const auto& t) { return t.defined(); });
    if (!any) return Tensors(num_outputs());
    BackwardCall call;
    call.d = std::move(d);
    // Throws after release_variables, and for a tensor that was changed in place.
    for (const auto& tensor : saved_) call.saved.push_back(tensor.unpack(pointer_to(this)));
    for (size_t i = 0; i < num_outputs(); ++i) call.needs.push_back(task_should_compute_output(i));
    return backward_(call);
  }

  const std::string name_;
  std::vector<SavedVariable> saved_;
  BackwardFunction backward_;
};

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

}  // namespace

Differentiable::Differentiable(const std::string& op, const Tensors& inputs) {
  for (const auto& input : inputs)
    TORCH_CHECK(!input.defined() || !input._fw_grad(/*level=*/0).defined(), op,
                ": forward-mode derivatives are not available; use reverse mode, or plain PyTorch "
                "(in Python translution.ReferenceAttention)");
  if (!torch::autograd::compute_requires_grad(inputs)) return;
  node_ = make_node<GradientNode>(op);
  node_->set_next_edges(torch::autograd::collect_next_edges(inputs));
}

void Differentiable::finish(const Tensors& outputs, const Tensors& saved,
                            BackwardFunction backward) const {
  if (!node_) return;
  for (auto output : outputs) torch::autograd::set_history(output, node_);
  static_cast<GradientNode&>(*node_).set(saved, std::move(backward));
}

void refuse_second_derivative(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string full = op.schema().name();  // "translution::attention_backward"
  const size_t first = full.find("::") + 2;
  const std::string name = full.substr(first, full.rfind("_backward") - first);
  const Differentiable call(name, last_tensors(*stack, op.schema().arguments().size()));
  call.below([&] { return op.callBoxed(stack); });
  call.finish(last_tensors(*stack, op.schema().returns().size()), {},
              [name](const BackwardCall&) -> Tensors {
                TORCH_CHECK(false, name,
                            ": second derivatives are not available; use plain PyTorch instead "
                            "(in Python translution.ReferenceAttention)");
              });
}

}  // namespace translution
