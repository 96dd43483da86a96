#include "translution/train/options.h"

#include <algorithm>
#include <cmath>

namespace translution {

using namespace detail;

namespace {

using namespace fields;
using O = TrainOptions;
using F = Setting<TrainOptions>;

Kind<Parallel> parallel() {
  return {FieldType::word,
          "data=D,offset=P",
          parse_parallel,
          [](const Parallel& value) { return value.text(); },
          {},
          0,
          "data=WORLD_SIZE,offset=1"};
}

SettingGroup<TrainOptions> length_group() {
  return {"Length",
          {F("epochs", &O::epochs, whole(1), "passes over the training data"),
           F("steps", &O::steps, whole(0), "training steps, instead of epochs; 0: use epochs"),
           F("batch", &O::batch, whole(1), "samples per step"),
           F("accumulate", &O::accumulate, whole(1),
             "parts that a batch, or a shard of it, is split into, to save memory (gradient "
             "accumulation)")
               .free_on_resume(),
           F("shards", &O::shards, whole(0, 1 << 16),
             "shards of a batch, a power of two; the same bits for 1, 2, 4, … processes up to it; "
             "0: one shard per process")
               .left_out_by_default()
               .before_it("0"),
           F("parallel", &O::parallel, parallel(),
             "how processes share the training: groups that share a batch, and processes in each, "
             "which own parts of the tables")
               .left_out_by_default()
               .free_on_resume()}};
}

SettingGroup<TrainOptions> optimizer_group() {
  return {"Optimizer (AdamW)",
          {F("lr", &O::lr, real(0, 1e3), "learning rate"),
           F("min-lr", &O::min_lr, real(0, 1e3), "final learning rate of the cosine schedule"),
           F("schedule", &O::schedule, one_of(kSchedules), "learning rate schedule"),
           F("warmup", &O::warmup, whole(0), "steps in which the learning rate rises from 0"),
           F("weight-decay", &O::weight_decay, real(0, 1e3),
             "weight decay of matrices and weight tables"),
           F("beta2", &O::beta2, real(0, 1), "AdamW's beta2"),
           F("clip", &O::clip, real(0, 1e9), "maximum norm of the gradients; 0: no clipping"),
           F("clip-by", &O::clip_by, one_of(kClipBys), "which norm --clip limits")
               .left_out_by_default()
               .before_it("global"),
           F("label-smoothing", &O::label_smoothing, real(0, 0.99),
             "share of the target spread over all classes"),
           F("number-loss", &O::number_loss, one_of(kNumberLosses),
             "loss of models that predict a number")
               .left_out_by_default()
               .before_it("squared")}};
}

// The default precision is left out: trainings from before this option keep their names.
SettingGroup<TrainOptions> run_group() {
  return {
      "Run",
      {F("seed", &O::seed, whole<uint64_t>(0),
         "seed of initial weights, sample order, digit placement and dropout"),
       F("precision", &O::precision, one_of(kPrecisions), "precision of matrix products")
           .left_out_by_default()
           .before_it("float32"),
       F("device", &O::device, any_text("NAME"), "device to compute on: cpu, cuda, cuda:N or mps")
           .left_out_by_default()
           .free_on_resume(),
       F("offload", &O::offload, any_text("DIR"),
         "directory for weights and moments in mapped files, for models larger than memory")
           .left_out_by_default()
           .free_on_resume()
           .unset_means("off"),
       F("log-every", &O::log_every, whole(1), "steps between log lines").free_on_resume(),
       F("eval-every", &O::eval_every, whole(0), "steps between evaluations; 0: after every epoch")
           .free_on_resume(),
       F("save-every", &O::save_every, whole(0), "steps between checkpoints; 0: after every epoch")
           .free_on_resume(),
       F("keep", &O::keep, whole(1), "newest checkpoints to keep, besides the best")
           .free_on_resume(),
       F("workers", &O::workers, whole(0), "loader threads; 0 loads on the training thread")
           .free_on_resume()}};
}

}  // namespace

void TrainOptions::check() const {
  require(accumulate <= batch, "accumulate: expected at most the batch, ", batch, ", got ",
          accumulate);
  require((shards & (shards - 1)) == 0, "shards: expected a power of two, got ", shards);
  require(shards <= batch, "shards: expected at most the batch, ", batch, ", got ", shards);
  require(min_lr <= lr, "min-lr: expected at most lr, ", lr, ", got ", min_lr);
  require(beta2 < 1, "beta2: expected less than 1, got ", beta2);
  require(offload.empty() || clip == 0 || clip_by != ClipBy::global,
          "clip-by: expected layer or last with offload, got global, whose norm is known only "
          "after the first layers are updated; use --clip-by layer, --clip-by last or --clip 0");
  require(offload.empty() || device == "cpu", "offload: expected the device cpu, got ", device);
  require(offload.empty() || shards <= 1, "offload: expected no shards, got ", shards);
  require(offload.empty() || parallel.offset == 1, "offload: expected offset=1 in parallel, got ",
          parallel.text());
  require(workers <= 256, "workers: expected 0 to 256, got ", workers);
}

double learning_rate(const TrainOptions& o, int64_t step, int64_t total) {
  if (step < o.warmup) return o.lr * static_cast<double>(step + 1) / static_cast<double>(o.warmup);
  if (o.schedule == Schedule::constant) return o.lr;
  constexpr double kPi = 3.141592653589793;
  const double share = static_cast<double>(step - o.warmup) /
                       static_cast<double>(std::max<int64_t>(1, total - o.warmup));
  return o.min_lr + (o.lr - o.min_lr) * 0.5 * (1 + std::cos(kPi * std::min(1.0, share)));
}

const Settings<TrainOptions>& train_settings() {
  static const Settings<TrainOptions> groups = {length_group(), optimizer_group(), run_group()};
  return groups;
}

}  // namespace translution
