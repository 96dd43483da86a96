#include "translution/train/step.h"

#include <torch/utils.h>

#include <cmath>

#include "translution/ops/compat.h"
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
  return {options.accumulate, options.label_smoothing, options.clip};
}

double add_gradients(Network& network, const Batch& batch, int64_t of, const StepOptions& options,
                     const at::Generator& dropout, const std::function<void(int64_t)>& done) {
  double sum = 0;
  const int64_t samples = batch.input.size(0);
  for (int64_t part = 0; part < options.parts; ++part) {
    const int64_t begin = samples * part / options.parts;
    const int64_t count = samples * (part + 1) / options.parts - begin;
    if (count > 0) {
      const auto logits = network.forward(batch.input.narrow(0, begin, count), dropout);
      const auto loss =
          loss_of(logits, batch.target.narrow(0, begin, count), options.label_smoothing) *
          (static_cast<double>(count) / static_cast<double>(of));
      sum += loss.item<double>();
      if (!std::isfinite(sum)) return sum;
      loss.backward();
    }
    if (done) done(part + 1);
  }
  return sum;
}

StepOutcome train_step(Network& network, AdamW& optimizer, const Batch& batch,
                       const StepOptions& options, const at::Generator& dropout,
                       const std::function<void(int64_t)>& done) {
  optimizer.zero_grad();
  StepOutcome outcome;
  outcome.loss = add_gradients(network, batch, batch.input.size(0), options, dropout, done);
  if (std::isfinite(outcome.loss)) outcome.norm = optimizer.step(options.clip);
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
