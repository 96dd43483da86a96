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

}  // namespace translution
