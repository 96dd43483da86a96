#include <fmt/format.h>

#include <algorithm>

#include "commands.h"
#include "instruction_sets.h"
#include "model_flags.h"
#include "print_line.h"
#include "progress.h"
#include "signals.h"
#include "start_text.h"
#include "table.h"
#include "threads.h"
#include "training.h"
#include "translution/core/cpu_info.h"
#include "translution/core/units.h"
#include "translution/data/settings.h"
#include "translution/distributed/world.h"
#include "translution/models/authors.h"
#include "translution/models/cost.h"
#include "translution/train/config.h"
#include "translution/train/device.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr int64_t kMaxThreads = 1024;
constexpr const char* kDefaultModel = "vit-a/12";
const std::vector<std::string> kSizes = {"image-size", "channels", "classes",
                                         "vocabulary", "axes",     "points"};
constexpr const char* kTrainExamples =
    "The program draws `digits` itself. scripts/fetch-mnist fetches `mnist:data/mnist`, and\n"
    "scripts/fetch-fashion-mnist fetches `mnist:data/fashion-mnist`.\n"
    "\n"
    "A run directory holds config.toml, metrics.jsonl, metrics.csv, TensorBoard events and\n"
    "checkpoints/. SIGINT (Ctrl-C), SIGTERM and SIGHUP (a lost terminal) save a checkpoint and\n"
    "stop the run with exit code 130, 143 or 129. --resume auto continues from the newest "
    "complete\n"
    "checkpoint. The result is the same, bit for bit, as that of a run without a stop.\n"
    "\n"
    "Several processes train together if each finds its place in RANK, LOCAL_RANK, WORLD_SIZE,\n"
    "MASTER_ADDR and MASTER_PORT. `translution launch`, torchrun, Slurm or mpirun start them.\n"
    "With --shards the result has the same bits for any number of them. With --parallel\n"
    "data=D,offset=P, groups of P processes take the same samples, and each owns 1/P of the "
    "tables.\n"
    "\n"
    "--from starts from trained weights. The model is that of PATH unless options or data change\n"
    "it: another --method, another image size, other classes. The program prints which weights\n"
    "are taken and which are new. A resumed run does not read PATH again.\n"
    "\n"
    "--offload DIR trains models larger than memory: weights and AdamW's moments are in mapped\n"
    "files in DIR, and one layer at a time is in memory and updated inside backward. It needs\n"
    "--clip-by layer, --clip-by last or --clip 0. --accumulate splits the batch in each layer.\n"
    "\n"
    "A configuration file has the names of the options without dashes, as in\n"
    "`method = \"alpha_translution\"`. Options on the command line override the file.\n"
    "\n"
    "Examples:\n"
    "  translution train --model vit-a/12 --method alpha_translution --epochs 2 --out runs/alpha\n"
    "  translution train --data mnist:data/mnist --train-on dynamic --model vit-a/12 --out runs/m\n"
    "  translution train --config configs/mnist/03-vit-a-12-translution.toml --out runs/t --resume "
    "auto\n"
    "  translution train --from runs/alpha --train-on dynamic --lr 1e-4 --out runs/tuned\n"
    "  translution train --model vit-a/12 --method translution --offload work --clip-by layer \\\n"
    "                    --out runs/large\n"
    "  translution launch --ranks 4 -- train --shards 8 --out runs/four\n"
    "  translution launch --ranks 4 -- train --parallel data=2,offset=2 --out runs/split";

struct TrainFlags {
  explicit TrainFlags(Command command) : settings(command) {
    add_model_flags(settings, kDefaultModel, with_default("the data's", model_settings(), kSizes));
    settings.add(data_settings());
    settings.add(train_settings());
    settings.add("threads", "N", "worker threads (all available cores, shared by the processes)",
                 "Run");
    settings.add("from", "PATH",
                 "run directory, checkpoint or file of weights to start from (random weights)",
                 "Run");
    config = command.option("--config", "FILE", "TOML file of settings (none)", "Run");
    out = command.option("--out", "RUN", "run directory, created if missing", "Run");
    resume = command.option(
        "--resume", "auto",
        "continue from the newest complete checkpoint of --out, if there is one (off)", "Run");
    settings.add(world_settings());
    command.require_one_of({out});
  }

  SettingFlags settings;
  Option config, out, resume;
};

std::map<std::string, std::string> given_settings(const TrainFlags& flags) {
  auto given = flags.settings.given();
  if (!flags.config.given()) return given;
  for (const auto& [name, text] : read_config(value_of(flags.config).text, flags.settings.names()))
    given.emplace(name, text);  // unless the command line has it
  return given;
}

// Sizes that are given although the data has them.
std::vector<std::string> sizes_given(const std::map<std::string, std::string>& given) {
  std::vector<std::string> names;
  for (const auto& name : kSizes)
    if (given.count(name) == 1) names.push_back(name);
  return names;
}

// The model of a run that starts from weights: their model with the given settings changed.
ModelOptions changed_model(const RunOptions& run, const std::map<std::string, std::string>& given) {
  const auto stored = find_model(weights_path(run));
  if (const auto name = given.find("model"); name != given.end()) {
    require(!is_authors_model(name->second), "--model: expected a name such as ",
            stored.options.name(), " with --from, got the authors' name ", name->second,
            "; set --method and its options instead");
    require(ModelOptions::named(name->second).family == stored.options.family, "--model: expected ",
            stored.options.name(), " as in ", stored.path, ", got ", name->second);
  }
  auto texts = given;
  for (const auto& [name, text] : model_texts(stored.options)) texts.emplace(name, text);
  auto model = parse_model(texts, "--");
  // The position embedding stays if the method changes to one that has none by default.
  if (stored.options.embeds_input() && !model.embeds_input() && given.count("input-embedding") == 0)
    model.input_embedding = true;
  return model;
}

// The options of a run. `given` holds the settings from the config file and the command line; all
// others have their defaults.
RunOptions run_options(const TrainFlags& flags, std::map<std::string, std::string> given) {
  RunOptions run;
  run.directory = value_of(flags.out).text;
  if (flags.resume.given()) {
    const auto text = value_of(flags.resume).text;
    require(text == "auto", "--resume: expected auto, got '", text, "'");
    run.resume = true;
  }
  set_all(train_settings(), given, run.train, "--");
  run.train.check();
  find_device(run.train.device);  // fails now, not after the data is opened
  set_all(data_settings(), given, run.data, "--");
  check_run_directory(run.directory, run.resume);
  if (const auto from = given.find("from"); from != given.end()) run.from = from->second;
  if (run.from.empty()) {
    given.emplace("model", kDefaultModel);
    run.model = parse_model(given, "--");
  } else {
    run.model = changed_model(run, given);
  }
  run.fixed_sizes = sizes_given(given);
  return run;
}

int threads_in(const std::map<std::string, std::string>& given, const World& world) {
  const auto threads = given.find("threads");
  return threads == given.end()
             ? std::max(1, usable_cores() / world.local_size())
             : static_cast<int>(SettingValue{"--threads", threads->second}.number(1, kMaxThreads));
}

TrainEvents show_on(Progress& progress, int64_t per_epoch) {
  TrainEvents events;
  events.started = [&](int64_t step) {
    if (step > 0) progress.message(fmt::format("resumed after step {}", step));
    progress.update(step, "");
  };
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

std::shared_ptr<World> join_world(const std::map<std::string, std::string>& given) {
  WorldOptions options;
  set_all(world_settings(), given, options, "--");
  return std::make_shared<World>(place_in_environment(), options);
}

void print_summary(const RunOptions& run, const DataSource& source) {
  const auto cost = model_cost(run.model);
  fmt::print("{} with {}: {} parameters, {} per sample and step\n", run.model.name(),
             name_of(kMethods, run.model.position.method), grouped(cost.parameters),
             in_flops(cost.training_flops));
  fmt::print("{}: {} training samples", run.data.data, grouped(source.train->size()));
  if (kind_of(run.data.data) == DataKind::images)
    fmt::print(" (augment {})", name_of(kAugments, run.data.augment));
  for (const auto& set : source.evaluation)
    fmt::print(", {} in {}", grouped(set.dataset->size()), set.name);
  fmt::print("; {}\n", run.directory);
  if (run.train.precision == Precision::bf16)
    fmt::print("bfloat16 products: {}\n", bf16_products(instruction_sets()));
  if (run.train.device != "cpu") fmt::print("device: {}\n", run.train.device);
  if (run.world->size() > 1) fmt::print("{}\n", run.world->describe());
  if (const auto parallel = run.train.parallel.of(run.world->size()); parallel.offset > 1)
    fmt::print("parallel: {}; each process has 1/{} of the tables\n", parallel.text(),
               parallel.offset);
  if (!run.train.offload.empty())
    fmt::print("weights and moments in {}: {}\n", run.train.offload,
               in_bytes(3 * cost.weight_bytes));
}

// The part of a rank other than 0, which prints warnings and errors alone.
void train_silently(RunOptions run, const DataSource& source) {
  if (!train_until_signal(std::move(run), source).done) throw Stopped("");
}

void train_and_show(RunOptions run, const DataSource& source) {
  print_summary(run, source);
  if (const auto start = plan_start(run, source)) fmt::print("{}", start_text(*start));
  std::fflush(stdout);
  Progress progress(total_steps(source, run.train), stderr);
  run.events = show_on(progress, steps_per_epoch(source, run.train));
  if (weights_path(run) != run.from && !run.from.empty())
    progress.message(
        fmt::format("{} has a checkpoint; --from {} is not read", run.directory, run.from));
  const auto result = train_until_signal(run, source);
  progress.finish();
  if (!result.done)
    throw Stopped(fmt::format(
        "stopped after step {}; a checkpoint is saved, continue with --resume auto", result.step));
  fmt::print("{}/checkpoints/last has the weights; `translution report {}` writes a report\n",
             run.directory, run.directory);
}

void train_in(const std::shared_ptr<World>& world, const TrainFlags& flags,
              const std::map<std::string, std::string>& given) {
  auto run = run_options(flags, given);
  run.world = world;
  run.data.report = [world](const std::string& line) {
    print_line(world->size() > 1 ? fmt::format("rank {}: {}", world->rank(), line) : line);
  };
  use_threads(threads_in(given, *world));
  const auto source = open_run(run);
  if (world->is_first())
    train_and_show(std::move(run), source);
  else
    train_silently(std::move(run), source);
}

void run_train(const TrainFlags& flags) {
  ignore_closed_pipes();
  const auto given = given_settings(flags);
  const auto world = join_world(given);
  try {
    train_in(world, flags, given);
  } catch (const std::exception& error) {
    world->fail(error.what());
    throw;
  }
}

}  // namespace

void add_train(Command program) {
  auto command = program.add_command("train", "Train a model on images, digits, text or points");
  const auto flags = std::make_shared<TrainFlags>(command);
  command.footer(kTrainExamples);
  command.run([flags] { run_train(*flags); });
}

}  // namespace translution::cli
