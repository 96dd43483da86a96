#include "training_run.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <filesystem>

#include "measure.h"
#include "signals.h"
#include "table.h"
#include "translution/core/cpu_info.h"
#include "translution/core/random.h"
#include "translution/data/settings.h"
#include "translution/io/atomic_file.h"
#include "translution/models/settings.h"
#include "translution/nn/generator.h"
#include "translution/train/config.h"
#include "version.h"

namespace translution::cli {
namespace {

constexpr double kRateHoldsMs = 60'000;

// What must not change when a run is resumed.
SettingTexts run_texts(const TrainingSettings& settings) {
  auto texts = model_texts(settings.model);
  for (auto& entry : texts_of(data_settings(), settings.data, Which::learned))
    texts.push_back(entry);
  texts.emplace_back("seed", std::to_string(settings.train.seed));
  texts.emplace_back("batch", std::to_string(settings.train.batch));
  return texts;
}

void write_config(const TrainingSettings& settings, const std::string& out) {
  const std::vector<std::string> comments = {
      fmt::format("translution {} ({}), LibTorch {}, {}, {} threads", kVersion, kCommit,
                  kTorchVersion, name_of(kIsas, chosen_isa()), settings.threads)};
  write_file_atomically(
      out + "/config.toml",
      format_config(comments, {{"model", model_texts(settings.model)},
                               {"data", texts_of(data_settings(), settings.data)},
                               {"train", texts_of(train_settings(), settings.train)}}));
}

template <typename Products>
double best_rate(Products products) {
  double best = 0;
  for (int i = 0; i < 5; ++i) best = std::max(best, products.gflops());
  return best;
}

// What a run would overwrite; nothing where the directory has none of it.
std::string file_of_a_run(const std::string& directory) {
  for (const char* name : {"metrics.jsonl", "metrics.csv", "config.toml"})
    if (std::filesystem::exists(directory + "/" + name)) return name;
  return "";
}

}  // namespace

void check_run_directory(const std::string& out, bool resume) {
  const std::string checkpoints = out + "/checkpoints", file = file_of_a_run(out);
  const bool saved = !list_steps(checkpoints).empty();
  const bool begun = never_saved(checkpoints);  // stopped before its first checkpoint: starts anew
  require(resume || !(saved || (begun && !file.empty())), out,
          " holds a run already; use --resume auto to go on, or another --out");
  require(
      saved || begun || file.empty(), out, " has ", file,
      " but no checkpoint to go on from, and a new run would overwrite it; move it away, or use "
      "another --out");
}

Reached train_in(const DataSource& source, const TrainingCall& call) {
  check_run_directory(call.out, call.resume);
  const auto& settings = call.settings;
  Network network(settings.model, seeded_generator(Random({settings.train.seed}).bits()));
  Trainer trainer(
      network, source,
      {settings.train, call.out, run_texts(settings), texts_before(data_settings()),
       [&] { return product_rate(settings.model.precision, settings.threads); }, call.events});
  if (call.resume) trainer.resume();
  write_config(settings, call.out);  // not earlier: a run that these do not fit keeps its own
  if (call.started) call.started(trainer.step());
  const StopAtSignals signals;
  const bool done = trainer.run(stop_requested());
  return {done, trainer.step()};
}

double product_rate(Precision precision, int threads) {
  static double rate = 0;
  static Precision of_precision = Precision::float32;
  static int of_threads = 0;
  static Stopwatch age;
  if (of_precision == precision && of_threads == threads && age.milliseconds() < kRateHoldsMs)
    return rate;
  rate = precision == Precision::bf16 ? best_rate(Bf16Gemm(threads)) : best_rate(Sgemm(threads));
  of_precision = precision;
  of_threads = threads;
  age = Stopwatch();
  return rate;
}

std::string metrics_text(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics.values) {
    if (name == "top1" || name == "top5")
      text += fmt::format("  {} {:.2f} %", name, 100 * value);
    else if (name == share_metric(Precision::float32))
      text += fmt::format("  of SGEMM {:.2f} %", 100 * value);
    else if (name == share_metric(Precision::bf16))
      text += fmt::format("  of bfloat16 products {:.2f} %", 100 * value);
    else if (name == "samples_per_s" || name == "tokens_per_s")
      text += fmt::format("  {} {}/s", grouped(value), name.substr(0, name.find('_')));
    else if (name == "loss" || name == "perplexity")
      text += fmt::format("  {} {:.4g}", name, value);
  }
  return text.empty() ? text : text.substr(2);
}

}  // namespace translution::cli
