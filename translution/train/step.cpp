#include "translution/train/step.h"

#include <torch/utils.h>

#include <cmath>

#include "translution/ops/compat.h"
#include "translution/train/clip.h"
#include "translution/train/evaluate.h"

namespace translution {

AdamWOptions adamw_options(const TrainOptions& o) {
  AdamWOptions options;
  options.lr = o.lr;
  options.beta2 = o.beta2;
  options.weight_decay = o.weight_decay;
  return options;
}

StepOptions step_options(const TrainOptions& options) {
  return {options.accumulate, options.label_smoothing, options.clip, options.clip_by};
}

namespace {

// Returns the gradients' norm.
double clip_and_update(Network& network, AdamW& optimizer, const StepOptions& options) {
  if (options.clip_by == ClipBy::global) return optimizer.step(options.clip);
  const auto parameters = network.module().parameters();
  std::vector<double> norms, scales(parameters.size());
  for (const auto& layer : parameter_layers(network)) {
    norms.push_back(gradient_norm(gradients_of(parameters, layer)));
    for (const size_t p : layer) scales[p] = layer_scale(options, norms.back());
  }
  const double norm = combined_norm(norms);
  if (std::isfinite(norm)) optimizer.update(scales);
  return norm;
}

}  // namespace

StepOutcome train_step(Network& network, AdamW& optimizer, const Batch& batch,
                       const StepOptions& options, const at::Generator& dropout,
                       const std::function<void(int64_t)>& done) {
  optimizer.zero_grad();
  StepOutcome outcome;
  const int64_t samples = batch.input.size(0);
  for (int64_t part = 0; part < options.parts; ++part) {
    const int64_t begin = samples * part / options.parts;
    const int64_t count = samples * (part + 1) / options.parts - begin;
    if (count > 0) {
      const auto logits = network.forward(batch.input.narrow(0, begin, count), dropout);
      const auto loss =
          loss_of(logits, batch.target.narrow(0, begin, count), options.label_smoothing) *
          (static_cast<double>(count) / static_cast<double>(samples));
      outcome.loss += loss.item<double>();
      if (!std::isfinite(outcome.loss)) return outcome;
      loss.backward();
    }
    if (done) done(part + 1);
  }
  outcome.norm = clip_and_update(network, optimizer, options);
  return outcome;
}

Batch random_batch(const ModelOptions& model, int64_t samples, const at::Generator& random) {
  const auto random_integers = [&](int64_t bound, at::IntArrayRef shape) {
    return at::randint(bound, shape, optional(random), torch::kLong);
  };
  if (model.family == Family::gpt)
    return {random_integers(model.vocabulary, {samples, model.length}),
            random_integers(model.vocabulary, {samples, model.length})};
  return {at::randn({samples, model.channels, model.image_size[0], model.image_size[1]},
                    optional(random), torch::kFloat),
          random_integers(model.classes, {samples})};
}

}  // namespace translution
