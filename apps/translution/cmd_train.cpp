#include <fmt/format.h>

#include <algorithm>

#include "commands.h"
#include "instruction_sets.h"
#include "memory_check.h"
#include "model_flags.h"
#include "progress.h"
#include "run_directory.h"
#include "signals.h"
#include "table.h"
#include "threads.h"
#include "training_run.h"
#include "translution/core/cpu_info.h"
#include "translution/data/settings.h"
#include "translution/models/cost.h"
#include "translution/train/config.h"

namespace translution::cli {
namespace {

constexpr int64_t kMaxThreads = 1024;
constexpr const char* kTrainExamples =
    "Data: `digits` are drawn by the program itself; scripts/fetch-mnist fills "
    "`mnist:data/mnist`,\n"
    "scripts/fetch-fashion-mnist `mnist:data/fashion-mnist`.\n"
    "A run directory holds config.toml, metrics.jsonl, metrics.csv, TensorBoard events and\n"
    "checkpoints/. Ctrl-C, SIGTERM and a lost terminal (SIGHUP) save a checkpoint and stop, with\n"
    "exit code 130, 143 or 129; --resume auto goes on from the newest whole checkpoint, bit for\n"
    "bit as if nothing had happened.\n"
    "A configuration file has the same names without dashes: `method = \"alpha_translution\"`. "
    "What\n"
    "stands on the command line wins.\n"
    "\n"
    "Examples:\n"
    "  translution train --model vit-a/12 --method alpha_translution --epochs 2 --out runs/alpha\n"
    "  translution train --data mnist:data/mnist --train-on dynamic --model vit-a/12 --out runs/m\n"
    "  translution train --config configs/mnist/03-vit-a-12-translution.toml --out runs/t --resume "
    "auto";

struct TrainFlags {
  explicit TrainFlags(Command command) : settings(command) {
    add_model_flags(settings);
    settings.add(data_settings());
    settings.add(train_settings());
    settings.add("threads", "N", "worker threads (all available cores)", "Run");
    config = command.option("--config", "FILE", "settings from a TOML file", "Run");
    out = command.option("--out", "RUN", "run directory; created if missing", "Run");
    resume =
        command.option("--resume", "auto",
                       "go on from the newest whole checkpoint of --out, if there is one", "Run");
  }

  SettingFlags settings;
  Option config, out, resume;
};

// All settings of a run, from defaults, file and command line.
struct Plan : TrainingSettings {
  std::string out;
  bool resume = false;
};

std::map<std::string, std::string> given_settings(const TrainFlags& flags) {
  auto given = flags.settings.given();
  if (!flags.config.given()) return given;
  for (const auto& [name, text] : read_config(value_of(flags.config).text, flags.settings.names()))
    given.emplace(name, text);  // unless the command line has it
  return given;
}

// Where the data decides a model's size, it need not be said again.
void fit_model(Family family, const DataSource& source, std::map<std::string, std::string>& given) {
  const auto set = [&](const char* name, const std::string& text) { given.emplace(name, text); };
  if (family == Family::gpt) return set("vocabulary", std::to_string(source.vocabulary));
  set("image-size", times(source.image));
  set("channels", std::to_string(source.channels));
  set("classes", std::to_string(source.classes.size()));
}

void check_kind(const ModelOptions& model, const DataSource& source, const std::string& data) {
  const bool text = source.vocabulary > 0;
  require(text || model.family == Family::vit, model.name(), " learns from text; ", data,
          " are images: wanted --data tokens:DIR, which `translution data text` makes");
  require(!text || model.family == Family::gpt, model.name(), " learns from images; ", data,
          " is text: wanted a gpt model");
}

void check_sizes(const ModelOptions& model, const DataSource& source) {
  if (model.family == Family::gpt)
    return require(source.vocabulary <= model.vocabulary, "--vocabulary wants at least the data's ",
                   source.vocabulary, ", got ", model.vocabulary);
  require(model.image_size == source.image && model.channels == source.channels &&
              model.classes == static_cast<int64_t>(source.classes.size()),
          "the model wants images of ", times(model.image_size), " with ", model.channels,
          " channels in ", model.classes, " classes, the data has ", times(source.image), " with ",
          source.channels, " in ", source.classes.size());
}

Plan make_plan(const TrainFlags& flags, std::map<std::string, std::string>& given) {
  Plan plan;
  require(flags.out.given(), "--out is missing; wanted a directory for the run");
  plan.out = value_of(flags.out).text;
  if (flags.resume.given()) {
    const auto text = value_of(flags.resume).text;
    require(text == "auto", "--resume wants auto, got '", text, "'");
    plan.resume = true;
  }
  set_all(train_settings(), given, plan.train, "--");
  plan.train.check();
  plan.data = data_options({}, given, plan.train.seed);
  plan.threads = usable_cores();
  if (const auto threads = given.find("threads"); threads != given.end())
    plan.threads = static_cast<int>(Value{"--threads", threads->second}.number(1, kMaxThreads));
  check_run_directory(plan.out, plan.resume);
  return plan;
}

// The length of a window of text is the model's.
void read_model_into(Plan& plan, DataSource& source, std::map<std::string, std::string>& given) {
  given.emplace("model", "vit-a/12");
  const auto named = ModelOptions::named(given.at("model"));
  plan.data.length = named.length;
  const auto size = given.find("image-size");
  if (size != given.end() && kind_of(plan.data.data) == DataKind::images)
    plan.data.image_size = static_cast<int>(Value{"--image-size", size->second}.number(1, 1 << 14));
  plan.data.report = print_line;
  source = open_data(plan.data);
  check_kind(named, source, plan.data.data);
  fit_model(named.family, source, given);
  plan.model = read_model(given, "--");
  plan.model.precision = plan.train.precision;
  check_sizes(plan.model, source);
}

TrainEvents show_on(Progress& progress, int64_t per_epoch) {
  TrainEvents events;
  events.message = [&](const std::string& line) { progress.message(line); };
  events.step = [&](int64_t step, const Metrics& latest) {
    progress.update(step, metrics_text(latest));
  };
  events.metrics = [&progress, per_epoch](const Metrics& metrics) {
    if (metrics.split == "train") return;
    progress.message(fmt::format("step {} (epoch {:.2f})  on {}: {}", metrics.step,
                                 static_cast<double>(metrics.step) / static_cast<double>(per_epoch),
                                 metrics.split, metrics_text(metrics)));
  };
  return events;
}

void introduce(const Plan& plan, const DataSource& source) {
  const auto cost = model_cost(plan.model);
  fmt::print("{} with {}: {} parameters, {} per sample and step\n", plan.model.name(),
             name_of(kMethods, plan.model.position.method), grouped(cost.parameters),
             in_flops(cost.training_flops));
  fmt::print("{}: {} samples to learn from", plan.data.data, grouped(source.train->size()));
  if (kind_of(plan.data.data) == DataKind::images)
    fmt::print(" (augment {})", name_of(kAugments, plan.data.augment));
  for (const auto& set : source.evaluation)
    fmt::print(", {} in {}", grouped(set.dataset->size()), set.name);
  fmt::print("; {}\n", plan.out);
  if (plan.train.precision == Precision::bf16)
    fmt::print("bfloat16 products: {}\n", bf16_products(instruction_sets()));
  std::fflush(stdout);
}

void run_train(const TrainFlags& flags) {
  ignore_closed_pipes();
  auto given = given_settings(flags);
  auto plan = make_plan(flags, given);
  use_threads(plan.threads);
  DataSource source;
  read_model_into(plan, source, given);
  const int64_t batch = std::min(plan.train.batch, source.train->size());
  require_memory_to_train(plan.model, (batch + plan.train.accumulate - 1) / plan.train.accumulate,
                          "lower --batch, or raise --accumulate");
  introduce(plan, source);
  Progress progress(total_steps(source, plan.train), stderr);
  TrainingCall call{plan, plan.out, plan.resume, {}, {}};
  call.events = show_on(progress, steps_per_epoch(source, plan.train));
  call.started = [&](int64_t step) {
    if (step > 0) progress.message(fmt::format("going on after step {}", step));
    progress.update(step, "");
  };
  const auto reached = train_in(source, call);
  progress.finish();
  if (!reached.done)
    throw Stopped(fmt::format(
        "stopped after step {}; the checkpoint is saved: go on with --resume auto", reached.step));
  fmt::print("{}/checkpoints/last has the weights; `translution report {}` makes the pictures\n",
             plan.out, plan.out);
}

}  // namespace

void add_train(Command program) {
  auto command = program.add_command("train", "Train a model on images, digits or text");
  const auto flags = std::make_shared<TrainFlags>(command);
  command.footer(kTrainExamples);
  command.run([flags] { run_train(*flags); });
}

}  // namespace translution::cli
