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
constexpr const char* kReproduceExamples =
    "DIR gets results.json, table.md (the paper's figures and ours side by side) and curves/\n"
    "after every evaluation, and report.html at the end; `translution report DIR/runs/*` makes "
    "one\n"
    "at any time. Trainings are in DIR/runs, or in --runs: tables that share it share trainings.\n"
    "Finished trainings are not repeated, and stopped ones are resumed. A signal stops it within "
    "a\n"
    "second; a training saves a checkpoint first. Settings of training are the budget's, unless\n"
    "given as for `translution train`; the table says what differs from the whole recipe.\n"
    "\n"
    "Examples:\n"
    "  translution reproduce mnist --budget quick --out out/mnist\n"
    "  translution reproduce mnist --budget desk --rows vit-a/12 --dry-run\n"
    "  translution reproduce mnist --budget desk --rows 1,2 --seeds 0,1 --out out/mnist\n"
    "  translution reproduce relative_dim --budget desk --data images:data/flowers --out out/dim\n"
    "  translution reproduce gpt --rows 6,9 --one-step --out out/gpt";

// Settings of training and data that a call may set; seeds and places have options of their own.
Settings<TrainOptions> train_flags() {
  auto groups = train_settings();
  for (auto& group : groups)
    group.settings.erase(std::remove_if(group.settings.begin(), group.settings.end(),
                                        [](const auto& setting) { return setting.name == "seed"; }),
                         group.settings.end());
  return groups;
}

struct ReproduceFlags {
  explicit ReproduceFlags(Command command) : settings(command) {
    command.argument("TABLE", table, "mnist, imagenet, gpt…; see `translution list`");
    budget = command.option("--budget", choices_text(kBudgets),
                            "how much to train: minutes, hours, or the whole recipe (quick)");
    rows = command.option("--rows", "LIST",
                          "rows of the table, as in 1,3-5, vit-a/12 or alpha_translution (all)");
    seeds = command.option("--seeds", "LIST", "seeds, one row for each, as in 0,1,2 (0)");
    data = command.option("--data", "KIND:WHERE", "data to train on (the budget's)");
    out = command.option("--out", "DIR", "directory of the results; created if missing");
    runs = command.option("--runs", "DIR", "directory of the trainings (DIR/runs)");
    known = command.option("--known", "DIR",
                           "directory of results; trainings finished there are not repeated");
    threads = command.option("--threads", "N", "worker threads (all available cores)");
    memory = command.option("--memory", "GB", "memory limit of --one-step (20)");
    command.flag("--dry-run", dry_run, "print the plan with time and memory, and stop");
    command.flag("--one-step", one_step,
                 "one step of training at the paper's batch instead, with its memory");
    settings.add(settings_named(data_settings(),
                                {"placement", "augment", "train-limit", "eval-limit", "hold-out"}));
    settings.add(train_flags());
    settings.add("init", "scaled|authors",
                 "how weights are initialised (images: authors; text: scaled)", "Model");
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
  request.table = paper_table(flags.table).name;  // refuses what is none
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
  require(flags.dry_run || flags.out.given(),
          "--out is missing; expected a directory for the results");
  call.out = text_or(flags.out, ".");
  call.runs = text_or(flags.runs, call.out + "/runs");
  call.known = text_or(flags.known, "");
  call.threads = static_cast<int>(number_or(usable_cores(), flags.threads, kMaxThreads));
  if (flags.memory.given()) call.memory_gb = value_of(flags.memory).real(0, kMostMemory);
  return call;
}

void run_reproduce(const ReproduceFlags& flags) {
  require(!flags.one_step || !flags.budget.given(),
          "--one-step takes the paper's batch, which no --budget changes; leave one of them out");
  require(!flags.one_step || !flags.runs.given(),
          "--one-step leaves no run behind; leave --runs out");
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
  auto command = program.add_command(
      "reproduce", "A table of the paper: train its rows, and put both figures side by side");
  const auto flags = std::make_shared<ReproduceFlags>(command);
  command.footer(kReproduceExamples);
  command.run([flags] { run_reproduce(*flags); });
}

}  // namespace translution::cli
