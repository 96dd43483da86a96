#include <algorithm>

#include "commands.h"
#include "model_flags.h"
#include "reproduce.h"
#include "translution/core/cpu_info.h"
#include "translution/core/error.h"
#include "translution/data/settings.h"
#include "translution/train/options.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr int64_t kMaxThreads = 1024, kMostSeed = int64_t{1} << 40;
constexpr double kMostMemory = 1e6;  // GB
constexpr const char* kGroup = "Reproduction";
// Settings that recipes set.
const std::vector<std::string> kInBudgets = {
    "epochs", "steps",           "batch",      "lr",         "min-lr", "warmup", "weight-decay",
    "beta2",  "label-smoothing", "eval-every", "save-every", "keep",   "workers"};
constexpr const char* kReproduceExamples =
    "Trains the rows of TABLE and compares their figures with the paper's. Writes results.json,\n"
    "table.md (the paper's figures and ours side by side) and curves/ into the directory --out "
    "after\n"
    "every evaluation, and report.html at the end. `translution report DIR/runs/*` writes a "
    "report\n"
    "at any time.\n"
    "\n"
    "The run directories are in --runs. Tables with the same --runs share trainings. The same\n"
    "command continues stopped trainings and skips finished ones. SIGINT (Ctrl-C), SIGTERM and\n"
    "SIGHUP stop it within a second, after a checkpoint is saved.\n"
    "\n"
    "A budget sets the data, the length and the optimizer of a training. `quick` takes minutes,\n"
    "`desk` hours, `paper` is the complete recipe. The options of `translution train` override "
    "it.\n"
    "table.md states the differences from the complete recipe.\n"
    "\n"
    "Examples:\n"
    "  translution reproduce mnist --budget quick --out out/mnist\n"
    "  translution reproduce mnist --budget desk --rows vit-a/12 --dry-run\n"
    "  translution reproduce mnist --budget desk --rows 1,2 --seeds 0,1 --out out/mnist\n"
    "  translution reproduce relative_dim --budget desk --data images:data/cifar10 --image-size 32 "
    "\\\n"
    "    --out out/cifar10\n"
    "  translution reproduce gpt --rows 6,9 --one-step --out out/gpt";

// The settings of training, without the seed, which --seeds replaces, and without --offload, whose
// directory is for one model.
Settings<TrainOptions> train_flags() {
  auto groups = train_settings();
  for (auto& group : groups)
    group.settings.erase(std::remove_if(group.settings.begin(), group.settings.end(),
                                        [](const auto& setting) {
                                          return setting.name == "seed" ||
                                                 setting.name == "offload";
                                        }),
                         group.settings.end());
  return groups;
}

struct ReproduceFlags {
  explicit ReproduceFlags(Command command) : settings(command) {
    command.argument("TABLE", table, "table of the paper; see `translution list`");
    const auto option = [&](const char* name, const std::string& type, const char* help) {
      return command.option(name, type, help, kGroup);
    };
    budget = option("--budget", choices_text(kBudgets), "length of the trainings (quick)");
    rows = option("--rows", "LIST",
                  "rows of the table, as in 1,3-5, vit-a/12 or alpha_translution (all; with "
                  "--one-step, those "
                  "that ran out of memory in the paper)");
    seeds = option("--seeds", "LIST", "seeds, each trained as a row of its own, as in 0,1,2 (0)");
    data = option("--data", "KIND[:WHERE]", "data to train on (the budget's)");
    out = option("--out", "DIR", "directory of the results, created if missing");
    runs = option("--runs", "DIR", "directory of the run directories (runs in --out)");
    known =
        option("--known", "DIR",
               "directory of `translution results`, whose finished trainings are skipped (none)");
    threads = option("--threads", "N", "worker threads (all available cores)");
    memory = option("--memory", "GB", "memory limit of --one-step (20)");
    const auto dry = command.flag("--dry-run", dry_run,
                                  "print the plan with time and memory, without training", kGroup);
    command.flag("--one-step", one_step,
                 "measure time and memory of one training step at the paper's batch size, instead "
                 "of training",
                 kGroup);
    command.require_one_of({out, dry});
    settings.add(with_default(
        "the budget's", settings_named(data_settings(), {"placement", "augment", "train-limit",
                                                         "eval-limit", "hold-out"})));
    settings.add(with_default("the budget's", train_flags(), kInBudgets));
    settings.add("init", "scaled|authors",
                 "initialisation of the weights (authors for images, scaled for text)", "Model");
    settings.add("image-size", "N",
                 "size of images from folders; patches become smaller with them (224)", "Model");
  }

  SettingFlags settings;
  std::string table;
  Option budget, rows, seeds, data, out, runs, known, threads, memory;
  bool dry_run = false, one_step = false;
};

std::string text_or(const Option& option, const std::string& fallback) {
  return option.given() ? value_of(option).text : fallback;
}

PlanRequest request_of(const ReproduceFlags& flags) {
  PlanRequest request;
  request.table = paper_table(flags.table).name;  // refuses an unknown table
  if (flags.budget.given()) request.budget = value_of(flags.budget).one_of(kBudgets);
  if (flags.rows.given()) request.rows = value_of(flags.rows).words();
  if (flags.seeds.given()) {
    request.seeds.clear();
    for (const auto& word : value_of(flags.seeds).words())
      request.seeds.push_back(SettingValue{"--seeds", word}.number(0, kMostSeed));
  }
  request.data = text_or(flags.data, "");
  request.settings = flags.settings.given();
  return request;
}

ReproduceCall call_of(const ReproduceFlags& flags) {
  ReproduceCall call;
  call.request = request_of(flags);
  call.out = text_or(flags.out, ".");
  call.runs = text_or(flags.runs, call.out + "/runs");
  call.known = text_or(flags.known, "");
  call.threads = static_cast<int>(number_or(usable_cores(), flags.threads, kMaxThreads));
  if (flags.memory.given()) call.memory_gb = value_of(flags.memory).real(0, kMostMemory);
  return call;
}

void run_reproduce(const ReproduceFlags& flags) {
  require(!flags.one_step || !flags.budget.given(),
          "--one-step uses the paper's batch size, which --budget does not change; leave one of "
          "them out");
  require(!flags.one_step || !flags.runs.given(),
          "--one-step writes no run directory; leave --runs out");
  require(!flags.one_step || !flags.known.given(),
          "--known is for trainings; leave it out with --one-step");
  require(flags.one_step || !flags.memory.given(),
          "--memory is for --one-step; use --accumulate to save memory in training");
  const auto call = call_of(flags);
  if (flags.one_step)
    flags.dry_run ? show_steps(call) : reproduce_steps(call);
  else
    flags.dry_run ? show_plan(call) : reproduce_table(call);
}

}  // namespace

void add_reproduce(Command program) {
  auto command = program.add_command("reproduce", "Reproduce a table of the paper");
  const auto flags = std::make_shared<ReproduceFlags>(command);
  command.footer(kReproduceExamples);
  command.run([flags] { run_reproduce(*flags); });
}

}  // namespace translution::cli
