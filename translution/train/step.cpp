#include "translution/train/step.h"

#include <torch/utils.h>

#include <cmath>
#include <numeric>

#include "translution/ops/compat.h"
#include "translution/train/clip.h"
#include "translution/train/evaluate.h"

namespace translution {

namespace {

std::vector<size_t> indices_of(const std::vector<torch::Tensor>& parameters) {
  std::vector<size_t> indices(parameters.size());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

}  // namespace

AdamWOptions adamw_options(const TrainOptions& o) {
  AdamWOptions options;
  options.lr = o.lr;
  options.beta2 = o.beta2;
  options.weight_decay = o.weight_decay;
  return options;
}

StepOptions step_options(const TrainOptions& options) {
  StepOptions step;
  step.parts = options.accumulate, step.label_smoothing = options.label_smoothing;
  step.clip = options.clip, step.clip_by = options.clip_by;
  step.number_loss = options.number_loss;
  return step;
}

Batch samples_of(const Batch& batch, int64_t begin, int64_t count) {
  const auto part = [&](const torch::Tensor& x) {
    return x.defined() ? x.narrow(0, begin, count) : x;
  };
  return {part(batch.input), part(batch.target), part(batch.positions), part(batch.mask)};
}

double add_gradients(Network& network, const Batch& batch, int64_t of, const StepOptions& options,
                     const at::Generator& dropout, const std::function<void(int64_t)>& done) {
  double sum = 0;
  const int64_t samples = batch.input.size(0);
  for (int64_t part = 0; part < options.parts; ++part) {
    const int64_t begin = samples * part / options.parts;
    const int64_t count = samples * (part + 1) / options.parts - begin;
    if (count > 0) {
      const auto piece = samples_of(batch, begin, count);
      const auto output = network.forward(piece.input, dropout, points_of(piece));
      const auto loss =
          loss_of(output, piece.target, {options.label_smoothing, options.number_loss}) *
          (static_cast<double>(count) / static_cast<double>(of));
      sum += loss.item<double>();
      if (!std::isfinite(sum)) return sum;
      loss.backward();
    }
    if (done) done(part + 1);
  }
  return sum;
}

double clip_and_update(Network& network, AdamW& optimizer, const StepOptions& options) {
  return clip_and_update(network, optimizer, options, {});
}

double clip_and_update(Network& network, AdamW& optimizer, const StepOptions& options,
                       const SplitGradients& split) {
  const auto parameters = network.module().parameters();
  const auto groups = options.clip_by == ClipBy::global
                          ? std::vector<std::vector<size_t>>{indices_of(parameters)}
                          : parameter_layers(network);
  const auto norms = gradient_norms(parameters, groups, split);
  std::vector<double> scales(parameters.size());
  for (size_t g = 0; g < groups.size(); ++g)
    for (const size_t p : groups[g]) scales[p] = layer_scale(options, norms[g]);
  const double norm = norms.size() == 1 ? norms[0] : combined_norm(norms);
  if (std::isfinite(norm)) optimizer.update(scales);
  return norm;
}

StepOutcome train_step(Network& network, AdamW& optimizer, const Batch& batch,
                       const StepOptions& options, const at::Generator& dropout,
                       const std::function<void(int64_t)>& done) {
  optimizer.zero_grad();
  StepOutcome outcome;
  outcome.loss = add_gradients(network, batch, batch.input.size(0), options, dropout, done);
  if (std::isfinite(outcome.loss)) outcome.norm = clip_and_update(network, optimizer, options);
  return outcome;
}

Batch random_batch(const ModelOptions& model, int64_t samples, const at::Generator& random) {
  const auto random_integers = [&](int64_t bound, at::IntArrayRef shape) {
    return at::randint(bound, shape, optional(random), torch::kLong);
  };
  if (model.family == Family::gpt)
    return {random_integers(model.vocabulary, {samples, model.length}),
            random_integers(model.vocabulary, {samples, model.length})};
  if (model.family == Family::cloud) {
    const auto numbers = [&](at::IntArrayRef shape) {
      return at::randn(shape, optional(random), torch::kFloat);
    };
    const double reach = model.spacing.value_or(1) * static_cast<double>(model.position.radius);
    auto features = numbers({samples, model.points, model.channels});
    auto positions = reach * numbers({samples, model.points, model.axes});
    auto target =
        model.predicts_number() ? numbers({samples}) : random_integers(model.classes, {samples});
    return {features, target, positions};
  }
  return {at::randn({samples, model.channels, model.image_size[0], model.image_size[1]},
                    optional(random), torch::kFloat),
          random_integers(model.classes, {samples})};
}

}  // namespace translution
