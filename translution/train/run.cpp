#include "translution/train/run.h"

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "translution/core/error.h"
#include "translution/core/random.h"
#include "translution/data/settings.h"
#include "translution/io/atomic_file.h"
#include "translution/models/memory_check.h"
#include "translution/models/settings.h"
#include "translution/nn/generator.h"
#include "translution/ops/products.h"
#include "translution/ops/runtime.h"
#include "translution/train/checkpoint.h"
#include "translution/train/config.h"
#include "translution/train/data_fit.h"
#include "translution/train/device.h"
#include "translution/train/trainer.h"

namespace translution {

using namespace detail;

namespace {

// The settings that must not change when a run is resumed.
SettingTexts run_texts(const RunOptions& options) {
  auto texts = model_texts(options.model);
  for (auto& entry : texts_of(data_settings(), options.data, WhichSettings::learned))
    texts.push_back(entry);
  texts.emplace_back("seed", std::to_string(options.train.seed));
  texts.emplace_back("batch", std::to_string(options.train.batch));
  return texts;
}

void write_config(const RunOptions& options) {
  std::vector<std::string> comments;
  if (!options.comment.empty()) comments.push_back(options.comment);
  write_file_atomically(
      options.directory + "/config.toml",
      format_config(comments, {{"model", model_texts(options.model)},
                               {"data", texts_of(data_settings(), options.data)},
                               {"train", texts_of(train_settings(), options.train)}}));
}

// The machine's rate of matrix products, measured again after a minute: on shared machines the rate
// changes during a long training.
class CurrentRate {
 public:
  explicit CurrentRate(Precision precision) : precision_(precision) {}

  double gflops() {
    const auto now = Clock::now();
    if (!gflops_ || now - measured_ > std::chrono::minutes(1)) {
      gflops_ = ProductRate(precision_, runtime().threads()).best_gflops();
      measured_ = now;
    }
    return *gflops_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Precision precision_;
  std::optional<double> gflops_;
  Clock::time_point measured_;
};

// The first file in the directory that a run would overwrite; empty if there is none.
std::string existing_run_file(const std::string& directory) {
  for (const char* name : {"metrics.jsonl", "metrics.csv", "config.toml"})
    if (std::filesystem::exists(directory + "/" + name)) return name;
  return "";
}

}  // namespace

int64_t steps_per_epoch(const DataSource& data, const TrainOptions& options) {
  return BatchOrder(data.train->size(), training_order(options.batch, 0)).batches_per_epoch();
}

int64_t total_steps(const DataSource& data, const TrainOptions& options) {
  return options.steps > 0 ? options.steps : options.epochs * steps_per_epoch(data, options);
}

void check_run_directory(const std::string& directory, bool resume) {
  require(!directory.empty(), "train: expected a directory for the run, got an empty name");
  const std::string checkpoints = directory + "/checkpoints", file = existing_run_file(directory);
  const bool saved = !list_steps(checkpoints).empty();
  const bool begun = never_saved(checkpoints);  // stopped before its first checkpoint: restarts
  require(resume || !(saved || (begun && !file.empty())), directory,
          " already holds a run; use --resume auto to continue it, or another --out");
  require(saved || begun || file.empty(), directory, " has ", file,
          " but no checkpoint to resume from, and a new run would overwrite it; move it away, or "
          "use another --out");
}

RunState run_state(const std::string& directory) {
  const auto steps = list_steps(directory + "/checkpoints");
  if (steps.empty()) return {};
  RunState state{steps.front()};
  try {
    state.evaluated = !find_checkpoint(directory).manifest.state.value("owes_evaluation", false);
  } catch (const std::runtime_error&) {  // damaged: Trainer::resume reports it
  }
  return state;
}

DataSource open_run(RunOptions& options) {
  auto& model = options.model;
  model.precision = options.train.precision;
  options.data.seed = options.train.seed;
  options.data.length = model.length;
  options.data.image_size = static_cast<int>(model.image_size.front());
  auto data = open_data(options.data);
  fit_to_data(model, data, options.data.data, options.fixed_sizes);
  const int64_t batch = std::min(options.train.batch, data.train->size());
  const int64_t parts = options.train.accumulate;
  if (find_device(options.train.device).is_cpu())
    require_memory_to_train(model, (batch + parts - 1) / parts,
                            "lower --batch, or raise --accumulate");
  return data;
}

TrainResult train(const RunOptions& options, const DataSource& data,
                  const std::atomic<bool>& stop) {
  check_run_directory(options.directory, options.resume);
  Network network(options.model, seeded_generator(Random({options.train.seed}).bits()));
  CurrentRate rate(options.model.precision);
  Trainer trainer(network, data,
                  {options.train, options.directory, run_texts(options),
                   texts_before(data_settings()), [&] { return rate.gflops(); }, options.events});
  if (options.resume) trainer.resume();
  write_config(options);  // after resume(), which throws if the options do not fit the run
  if (options.events.started) options.events.started(trainer.step());
  const bool done = trainer.run(stop);
  return {done, trainer.step()};
}

TrainResult train(RunOptions options) {
  const std::atomic<bool> never{false};
  check_run_directory(options.directory,
                      options.resume);  // first, since opening the data can take long
  const auto data = open_run(options);
  return train(options, data, never);
}

}  // namespace translution
