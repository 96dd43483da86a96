#include "translution/train/options.h"

#include <algorithm>
#include <cmath>

namespace translution {
namespace {

constexpr int64_t kMost = int64_t{1} << 40;

// Most settings are a number of a range: whole ones and others.
Setting<TrainOptions> whole(const char* name, std::string help, int64_t TrainOptions::*field,
                            int64_t least) {
  return {name, "N", std::move(help),
          [=](TrainOptions& o, const Value& v) { o.*field = v.number(least, kMost); },
          [=](const TrainOptions& o) { return std::to_string(o.*field); }};
}

Setting<TrainOptions> of_the_run(Setting<TrainOptions> setting) {
  setting.of_the_run = true;
  return setting;
}

Setting<TrainOptions> real(const char* name, std::string help, double TrainOptions::*field,
                           double most) {
  return {name, "X", std::move(help),
          [=](TrainOptions& o, const Value& v) { o.*field = v.real(0, most); },
          [=](const TrainOptions& o) { return number_text(o.*field); }};
}

SettingGroup<TrainOptions> length_group() {
  return {"Length",
          {whole("epochs", "passes over the training data (1)", &TrainOptions::epochs, 1),
           whole("steps", "updates of the weights, instead of epochs; 0: by epochs (0)",
                 &TrainOptions::steps, 0),
           whole("batch", "samples per update (256)", &TrainOptions::batch, 1),
           of_the_run(whole("accumulate",
                            "parts in which a batch is worked through, to save memory (1)",
                            &TrainOptions::accumulate, 1))}};
}

SettingGroup<TrainOptions> optimizer_group() {
  return {
      "Optimizer (AdamW)",
      {real("lr", "learning rate (0.001)", &TrainOptions::lr, 1e3),
       real("min-lr", "learning rate at the end of the cosine (0)", &TrainOptions::min_lr, 1e3),
       {"schedule", choices(kSchedules), "schedule of the learning rate (cosine)",
        [](TrainOptions& o, const Value& v) { o.schedule = v.one_of(kSchedules); },
        [](const TrainOptions& o) { return name_of(kSchedules, o.schedule); }},
       whole("warmup", "steps in which the rate rises from 0 (0)", &TrainOptions::warmup, 0),
       real("weight-decay", "weight decay of matrices and tables (0.05)",
            &TrainOptions::weight_decay, 1e3),
       real("beta2", "AdamW's beta2 (0.999)", &TrainOptions::beta2, 1),
       real("clip", "largest norm of the gradients; 0: no clipping (1)", &TrainOptions::clip, 1e9),
       real("label-smoothing", "share of the target given to all classes (0)",
            &TrainOptions::label_smoothing, 0.99)}};
}

// Empty for float32, so that trainings keep the names that they had before there was a choice.
Setting<TrainOptions> precision_setting() {
  Setting<TrainOptions> setting{
      "precision", choices(kPrecisions), "precision of matrix products (float32)",
      [](TrainOptions& o, const Value& v) { o.precision = v.one_of(kPrecisions); },
      [](const TrainOptions& o) {
        return o.precision == Precision::float32 ? "" : name_of(kPrecisions, o.precision);
      }};
  setting.before = name_of(kPrecisions, Precision::float32);
  return setting;
}

// Empty for the CPU, as for float32.
Setting<TrainOptions> device_setting() {
  return of_the_run({"device", "NAME", "device to compute on: cpu, cuda, cuda:N or mps (cpu)",
                     [](TrainOptions& o, const Value& v) { o.device = v.text; },
                     [](const TrainOptions& o) { return o.device == "cpu" ? "" : o.device; }});
}

SettingGroup<TrainOptions> run_group() {
  return {"Run",
          {{"seed", "N", "seed of weights, order, places and dropout (0)",
            [](TrainOptions& o, const Value& v) { o.seed = v.number(0, kMost); },
            [](const TrainOptions& o) { return std::to_string(o.seed); }},
           precision_setting(),
           device_setting(),
           of_the_run(whole("log-every", "steps between lines of the log (20)",
                            &TrainOptions::log_every, 1)),
           of_the_run(whole("eval-every", "steps between evaluations; 0: after every epoch (0)",
                            &TrainOptions::eval_every, 0)),
           of_the_run(whole("save-every", "steps between checkpoints; 0: after every epoch (0)",
                            &TrainOptions::save_every, 0)),
           of_the_run(whole("keep", "newest checkpoints kept, beside the best (3)",
                            &TrainOptions::keep, 1)),
           of_the_run(whole("workers", "loader threads; 0 loads on the training thread (1)",
                            &TrainOptions::workers, 0))}};
}

}  // namespace

void TrainOptions::check() const {
  require(accumulate <= batch, "accumulate wants at most the batch, ", batch, ", got ", accumulate);
  require(min_lr <= lr, "min-lr wants at most lr, ", lr, ", got ", min_lr);
  require(beta2 < 1, "beta2 wants less than 1, got ", beta2);
  require(workers <= 256, "workers wants 0 to 256, got ", workers);
}

double learning_rate(const TrainOptions& o, int64_t step, int64_t total) {
  if (step < o.warmup) return o.lr * static_cast<double>(step + 1) / static_cast<double>(o.warmup);
  if (o.schedule == Schedule::constant) return o.lr;
  constexpr double kPi = 3.141592653589793;
  const double share = static_cast<double>(step - o.warmup) /
                       static_cast<double>(std::max<int64_t>(1, total - o.warmup));
  return o.min_lr + (o.lr - o.min_lr) * 0.5 * (1 + std::cos(kPi * std::min(1.0, share)));
}

const std::vector<SettingGroup<TrainOptions>>& train_settings() {
  static const std::vector<SettingGroup<TrainOptions>> groups = {length_group(), optimizer_group(),
                                                                 run_group()};
  return groups;
}

}  // namespace translution
