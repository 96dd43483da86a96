#include "translution/train/offload_step.h"

#include <torch/utils.h>

#include <cmath>

#include "translution/nn/norm.h"
#include "translution/ops/runtime.h"
#include "translution/train/clip.h"
#include "translution/train/evaluate.h"

namespace translution {
namespace {

using torch::Tensor;

// Layer 0 is what is before the blocks, then one layer per block; the last one is the head.
class LayerwiseStep {
 public:
  LayerwiseStep(const Offloaded& state, const Batch& batch, const StepOptions& options,
                const at::Generator& dropout);
  StepOutcome run();

 private:
  struct Part {
    int64_t begin, count;
    std::vector<Tensor> inputs;             // of each layer; freed in backward
    std::vector<at::Generator> generators;  // before each layer, if dropout draws from them
    Tensor gradient;                        // of the output of the layer in progress
  };

  void forward();
  void forward(size_t layer, Part& part);
  bool backward_head();
  void backward(size_t layer, Part& part);
  bool update(size_t layer);
  Tensor compute(size_t layer, const Tensor& x, const at::Generator& generator);
  Tensor loss_of_part(const Part& part, const Tensor& x);

  Network& network_;
  AdamW& optimizer_;
  const Offload& offload_;
  const int64_t steps_done_;
  const Batch& batch_;
  const StepOptions& options_;
  at::Generator dropout_;
  const Tensor last_rows_;
  const std::vector<Tensor> parameters_;
  const std::vector<std::vector<size_t>> layers_;
  const size_t head_;  // the last layer
  const bool draws_;
  std::vector<Part> parts_;
  std::vector<double> norms_;  // of the gradients of each layer
  StepOutcome outcome_;
};

LayerwiseStep::LayerwiseStep(const Offloaded& state, const Batch& batch, const StepOptions& options,
                             const at::Generator& dropout)
    : network_(state.network),
      optimizer_(state.optimizer),
      offload_(state.offload),
      steps_done_(state.steps_done),
      batch_(batch),
      options_(options),
      dropout_(dropout),
      last_rows_(network_.last_rows()),
      parameters_(network_.module().parameters()),
      layers_(parameter_layers(network_)),
      head_(layers_.size() - 1),
      draws_(network_.options().dropout > 0),
      norms_(layers_.size()) {
  const int64_t samples = batch.input.size(0);
  for (int64_t part = 0; part < options.parts; ++part) {
    const int64_t begin = samples * part / options.parts;
    const int64_t count = samples * (part + 1) / options.parts - begin;
    if (count > 0) parts_.push_back({begin, count, std::vector<Tensor>(layers_.size()), {}, {}});
  }
}

StepOutcome LayerwiseStep::run() {
  optimizer_.zero_grad();
  forward();
  if (!backward_head()) return outcome_;
  for (size_t layer = head_; layer-- > 0;) {
    for (auto& part : parts_) backward(layer, part);
    if (!update(layer)) return outcome_;
  }
  ++optimizer_.state.steps;
  outcome_.norm = combined_norm(norms_);
  offload_.whole_after(steps_done_ + 1);
  return outcome_;
}

Tensor LayerwiseStep::compute(size_t layer, const Tensor& x, const at::Generator& generator) {
  if (layer == 0) return network_.embed(x, generator);
  AttendOptions call;
  call.generator = generator;
  if (layer + 1 == head_) call.rows = last_rows_;
  return network_.backbone()->blocks->at<BlockImpl>(layer - 1).forward(x, call);
}

// Dropout draws its numbers part by part, as in train_step. Without dropout each layer does all
// parts, so that its weights are read once.
void LayerwiseStep::forward() {
  const torch::NoGradGuard no_grad;
  for (auto& part : parts_) part.inputs[0] = batch_.input.narrow(0, part.begin, part.count);
  const auto layers_of = [&](size_t begin, size_t end) {
    for (size_t layer = 0; layer < head_; ++layer) {
      offload_.prefetch_weights(layer + 1);
      for (size_t p = begin; p < end; ++p) forward(layer, parts_[p]);
      offload_.release(layer);
    }
  };
  if (!draws_) return layers_of(0, parts_.size());
  for (size_t p = 0; p < parts_.size(); ++p) layers_of(p, p + 1);
}

void LayerwiseStep::forward(size_t layer, Part& part) {
  const auto& between_blocks = network_.backbone()->between_blocks;
  if (between_blocks) between_blocks();
  part.generators.push_back(draws_ ? dropout_.clone() : dropout_);
  part.inputs[layer + 1] = compute(layer, part.inputs[layer], dropout_);
}

Tensor LayerwiseStep::loss_of_part(const Part& part, const Tensor& x) {
  const auto logits = network_.logits(normalise(network_.backbone()->norm, x));
  const double share = static_cast<double>(part.count) / static_cast<double>(batch_.input.size(0));
  return loss_of(logits, batch_.target.narrow(0, part.begin, part.count),
                 {options_.label_smoothing, options_.number_loss}) *
         share;
}

// Returns false if the loss or the norm is not finite; no weight has changed then.
bool LayerwiseStep::backward_head() {
  runtime().release_pool();  // blocks of forward's sizes
  for (auto& part : parts_) {
    const auto x = std::exchange(part.inputs[head_], {}).detach().requires_grad_();
    const auto loss = loss_of_part(part, x);
    outcome_.loss += loss.item<double>();
    if (!std::isfinite(outcome_.loss)) return false;
    loss.backward();
    part.gradient = x.grad();
  }
  return update(head_);
}

// Computes the layer again, and its gradients. The embedding's input needs none.
void LayerwiseStep::backward(size_t layer, Part& part) {
  const auto input = std::exchange(part.inputs[layer], {}).detach();
  const auto x = layer > 0 ? input.requires_grad_() : input;
  const auto y = compute(layer, x, part.generators[layer]);
  y.backward(std::exchange(part.gradient, {}));
  part.gradient = x.grad();
}

// Updates the weights of a layer, one parameter after the other, and frees their gradients. Returns
// false if the norm is not finite.
bool LayerwiseStep::update(size_t layer) {
  offload_.drop_packed_copies(layer);
  offload_.prefetch_moments(layer);
  if (layer > 0) offload_.prefetch_weights(layer - 1);
  norms_[layer] = outcome_.norm = gradient_norm(gradients_of(parameters_, layers_[layer]));
  if (!std::isfinite(outcome_.norm)) return false;
  if (layer == head_) offload_.updates_after(steps_done_);
  const double scale = layer_scale(options_, norms_[layer]);
  for (const size_t p : layers_[layer]) {
    auto& gradient = parameters_[p].mutable_grad();
    if (!gradient.defined()) continue;
    const auto &first = optimizer_.state.first[p], &second = optimizer_.state.second[p];
    adamw_step(optimizer_.options, optimizer_.state.steps + 1, scale, {parameters_[p]}, {gradient},
               {first}, {second});
    gradient.reset();
    for (const auto& changed : {parameters_[p], first, second}) offload_.write_back(changed);
  }
  offload_.release(layer);
  return true;
}

}  // namespace

StepOutcome offload_step(const Offloaded& state, const Batch& batch, const StepOptions& options,
                         const at::Generator& dropout) {
  return LayerwiseStep(state, batch, options, dropout).run();
}

}  // namespace translution
