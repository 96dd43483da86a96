#include "reproduce.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "apps/translution/reproduce/curves.h"
#include "apps/translution/reproduce/cuts.h"
#include "apps/translution/reproduce/markdown.h"
#include "apps/translution/reproduce/run_record.h"
#include "json_text.h"
#include "measure.h"
#include "print_line.h"
#include "progress.h"
#include "signals.h"
#include "table.h"
#include "threads.h"
#include "training.h"
#include "translution/core/error.h"
#include "translution/core/memory.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"
#include "translution/models/cost.h"
#include "translution/ops/products.h"
#include "translution/train/device.h"
#include "translution/train/run_report.h"
#include "version.h"

namespace translution::cli {

using namespace detail;

namespace {

namespace fs = std::filesystem;

// ---------------------------------------------------------------------------------- the plan

DataFacts facts_of(const DataSource& source) {
  return {source.train->size(), source.evaluation.front().dataset->size(),
          source.channels,      static_cast<int64_t>(source.classes.size()),
          source.image,         source.vocabulary};
}

KnownRuns known_of(const ReproduceCall& call, const ReproducePlan& plan) {
  return call.known.empty() ? KnownRuns() : known_runs(plan, read_results(call.known));
}

// The device of all trainings. Throws if it is not available.
std::string device_of(const ReproducePlan& plan) {
  const auto& name = plan.trainings.front().train.device;
  find_device(name);
  return name;
}

// A training of the plan, its progress, and its forecast.
struct Task {
  const Training* training;
  std::string directory;
  bool known;      // from other results
  int64_t step;    // of the newest checkpoint
  bool evaluated;  // false: a stop interrupted the evaluation at that step
  Forecast forecast;

  bool finished() const { return step == training->steps && evaluated; }
  bool fits() const {
    return training->train.device != "cpu" || forecast.bytes <= static_cast<double>(usable_bytes());
  }
  double seconds_left() const {
    return forecast.seconds * static_cast<double>(training->steps - step) /
           static_cast<double>(training->steps);
  }
};

// The facts of the data. If the data of a recipe was not fetched, its known facts.
DataFacts facts_or_known(const DataOptions& data) {
  const auto known = known_data(data.data);
  try {
    return facts_of(open_to_train(data));
  } catch (const std::runtime_error& error) {
    if (!known) throw;
    fmt::print("{}\nThe plan uses the known sizes of {}.\n", error.what(), known->name);
  }
  auto facts = known->facts;
  if (!on_canvas(data)) facts.image.assign(facts.image.size(), data.image_size);
  if (data.train_limit > 0) facts.samples = std::min(facts.samples, data.train_limit);
  facts.samples = std::max<int64_t>(1, facts.samples - data.hold_out);
  if (data.eval_limit > 0) facts.evaluated = std::min(facts.evaluated, data.eval_limit);
  return facts;
}

// The share of the machine's product rate that a training reached, from its log; 0 if unknown. The
// median, as the machine may have been busy for a while.
double share_in_log(const std::string& directory, Precision precision) {
  const std::string path = directory + "/metrics.jsonl";
  if (!fs::exists(path)) return 0;
  std::vector<double> shares;
  for (const auto& moment : read_metrics(path))
    for (const auto& [name, value] : moment.values)
      if (name == share_metric(precision)) shares.push_back(value);
  return shares.empty() ? 0 : median(shares);
}

std::vector<Task> make_tasks(const ReproduceCall& call, const ReproducePlan& plan,
                             const DataFacts& facts, const KnownRuns& known) {
  const Precision precision = plan.trainings.front().train.precision;  // the same for all
  const double rate = ProductRate(precision, call.threads).best_gflops();
  std::vector<Task> tasks;
  for (const auto& training : plan.trainings) {
    const std::string directory = call.runs + "/" + training.name;
    const bool is_known = known.count(training.name) > 0;
    const auto [step, evaluated] = is_known ? RunState{training.steps} : run_state(directory);
    ensure(step <= training.steps, directory, ": is at step ", step, ", but the training has ",
           training.steps, " steps now; use the same data, or other --runs");
    tasks.push_back({&training, directory, is_known, step, evaluated,
                     forecast(training, facts, rate, share_in_log(directory, precision))});
  }
  return tasks;
}

std::string state_of(const Task& task) {
  if (task.known) return "known";
  if (task.finished()) return "finished";
  if (!task.fits())
    return fmt::format("needs more than the usable {}",
                       in_bytes(static_cast<double>(usable_bytes())));
  return task.step == 0 ? "" : fmt::format("resumes after step {}", grouped(task.step));
}

void print_tasks(const std::vector<Task>& tasks) {
  Table table({{"training"},
               {"parameters", Align::right},
               {"steps", Align::right},
               {"batch", Align::right},
               {"time", Align::right},
               {"memory", Align::right},
               {"state"}});
  double seconds = 0;
  for (const auto& task : tasks) {
    const auto& training = *task.training;
    table.add({training.name, grouped(model_cost(training.model).parameters),
               grouped(training.steps), grouped(training.train.batch),
               duration_text(task.seconds_left()), in_bytes(task.forecast.bytes), state_of(task)});
    seconds += task.seconds_left();
  }
  fmt::print("{}\n{} to go (estimate)\n", table.str(), duration_text(seconds));
}

void require_all_fit(const std::vector<Task>& tasks) {
  for (const auto& task : tasks)
    ensure(task.finished() || task.fits(), task.training->name, ": needs ",
           in_bytes(task.forecast.bytes), " of memory, more than the usable ",
           in_bytes(static_cast<double>(usable_bytes())),
           "; name other rows with --rows, or raise --accumulate");
}

void print_rows(const ReproducePlan& plan) {
  fmt::print("\n{}\n\n", plan.table.title);
  Table table({{"row", Align::right}, {"model"}, {"method"}, {""}, {"cut"}});
  for (const auto& row : plan.rows) {
    const auto described = name_row(plan.table, row);
    std::string cuts;
    for (const auto& cut : row.cuts) cuts += (cuts.empty() ? "" : "; ") + cut;
    table.add({std::to_string(row.number), described.model, described.method, described.variant,
               cuts.empty() ? "nothing" : cuts});
  }
  fmt::print("{}\n", table.str());
  std::fflush(stdout);
}

// ------------------------------------------------------------------------------------ output

// The run directories that exist for the results, including those of earlier calls.
std::vector<std::string> runs_of(const ReproduceCall& call, const Results& results) {
  std::vector<std::string> directories;
  std::set<std::string> seen;
  for (const auto& row : results.rows)
    for (const auto& run : row.runs) {
      const std::string directory = call.runs + "/" + run.name;
      if (seen.insert(run.name).second && fs::exists(directory + "/checkpoints/last"))
        directories.push_back(directory);
    }
  return directories;
}

// Takes minutes for large models. Returns false if there is no run directory.
bool write_report(const ReproduceCall& call, const Results& results, const std::string& device) {
  const auto directories = runs_of(call, results);
  ReportData data;
  data.title = results.title;
  Progress progress(std::max<int64_t>(1, directories.size()), stderr);
  for (const auto& directory : directories) {
    progress.update(data.runs.size(), "report");
    data.runs.push_back(describe_run(directory, {true, {}, device, print_line}));
  }
  progress.finish();
  if (!data.runs.empty()) write_file_atomically(call.out + "/report.html", make_report(data));
  return !data.runs.empty();
}

void write_all_curves(const ReproduceCall& call, const ReproducePlan& plan,
                      const KnownRuns& known) {
  make_directories(call.out + "/curves");
  for (const auto& training : plan.trainings) {
    const std::string run = call.runs + "/" + training.name, name = "/" + training.name + ".csv";
    const auto found = known.find(training.name);
    if (found != known.end())
      write_file_atomically(call.out + "/curves" + name,
                            read_file(call.known + "/" + found->second.table + name));
    else if (fs::exists(run + "/metrics.jsonl"))
      write_curves(run, call.out + "/curves" + name);
  }
}

Results write_all(const ReproduceCall& call, const ReproducePlan& plan, const KnownRuns& known) {
  write_all_curves(call, plan, known);
  const std::string mode = join("--budget ", name_of(kBudgets, plan.budget));
  const auto command = [&](const PlanRow& row) { return row_command(call, row, mode); };
  return write_results(call, collect_results(plan, call.runs, command, known));
}

// A finished training has a figure of its last step, unless its log was damaged.
void require_final_figures(const ReproduceCall& call, const ReproducePlan& plan,
                           const KnownRuns& known) {
  const auto results = collect_results(
      plan, call.runs, [](const PlanRow&) { return ""; }, known);
  for (const auto& row : results.rows)
    for (const auto& figure : row.figures)
      for (const auto& run : row.runs)
        ensure(run.name != figure.run || figure.step == run.steps, call.runs, "/", run.name,
               ": its log does not have ", figure.metric, " on ", figure.set, " at step ",
               run.steps, ", its last; remove the directory to train it again");
}

// ------------------------------------------------------------------------------------ training

// One progress display for all trainings. Its unit is a millisecond of the forecast time, so that a
// long training counts for more than a short one.
class Overall {
 public:
  explicit Overall(const std::vector<Task>& tasks) : progress_(total(tasks), stderr) {}

  TrainEvents events_of(const Task& task, const std::string& position,
                        const std::function<void()>& write) {
    TrainEvents events;
    events.message = [this](const std::string& line) { progress_.message(line); };
    events.step = [this, &task, position](int64_t step, const Metrics& latest) {
      progress_.update(done_ + milliseconds(task, step - task.step),
                       position + "  " + metrics_text(latest));
    };
    events.metrics = [this, &task, write](const Metrics& metrics) {
      if (metrics.split == "train") return;
      progress_.message(fmt::format("{}: step {} of {}, {}: {}", task.training->name,
                                    grouped(metrics.step), grouped(task.training->steps),
                                    metrics.split, metrics_text(metrics)));
      write();
    };
    return events;
  }
  void begin_task(const std::string& position) { progress_.update(done_, position); }
  void finish_task(const Task& task) {
    done_ += milliseconds(task, task.training->steps - task.step);
  }

 private:
  static int64_t milliseconds(const Task& task, int64_t steps) {
    return static_cast<int64_t>(1e3 * task.forecast.seconds * static_cast<double>(steps) /
                                static_cast<double>(task.training->steps));
  }
  static int64_t total(const std::vector<Task>& tasks) {
    int64_t sum = 0;
    for (const auto& task : tasks) sum += milliseconds(task, task.training->steps - task.step);
    return std::max<int64_t>(sum, 1);
  }

  Progress progress_;
  int64_t done_ = 0;
};

// Quoted for a shell.
std::string quoted(const std::string& text) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,=+-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string inside;
  for (const char letter : text) inside += letter == '\'' ? "'\\''" : std::string(1, letter);
  return "'" + inside + "'";
}

void train_task(const ReproduceCall& call, const Task& task, TrainEvents events) {
  const auto& training = *task.training;
  events.started = [&](int64_t) {
    write_run_record(task.directory, {machine_text(call.threads), kCommit,
                                      name_of(kPrecisions, training.train.precision)});
  };
  const auto source = open_to_train(training.data);
  RunOptions run{training.model, training.data, training.train, task.directory, /*resume=*/true};
  run.events = std::move(events);
  const auto reached = train_until_signal(std::move(run), source);
  if (!reached.done || stop_requested())
    throw Stopped(
        fmt::format("stopped after step {} of {}; a checkpoint is saved, "
                    "continue with the same command",
                    reached.step, training.name));
}

}  // namespace

DataSource open_to_train(const DataOptions& data) {
  try {
    return open_data(data);
  } catch (const std::runtime_error& error) {
    const auto known = known_data(data.data);
    if (!known || *known->fetch == '\0') throw;
    // The message has the error before the semicolon, and general advice after it.
    const std::string text = error.what();
    throw std::runtime_error(
        join(text.substr(0, text.find(';')), "; to fetch ", known->name, ": ", known->fetch));
  }
}

std::string row_command(const ReproduceCall& call, const PlanRow& row, const std::string& mode) {
  const auto& request = call.request;
  auto command = fmt::format("translution reproduce {} {} --rows {} --seeds {}", request.table,
                             mode, row.number, row.seed);
  if (!request.data.empty()) command += " --data " + quoted(request.data);
  for (const auto& [name, text] : request.settings) command += " --" + name + " " + quoted(text);
  return command + " --out " + quoted(call.out);
}

Results write_results(const ReproduceCall& call, const Results& fresh) {
  make_directories(call.out);
  const std::string path = call.out + "/results.json";
  auto results = fresh;
  if (fs::exists(path)) {
    const auto older = parse_results(read_file(path), path);
    ensure(older.table == fresh.table, path, ": holds results of ", older.table,
           "; use another --out");
    results = merge_results(older, fresh);
  }
  write_file_atomically(path, json_text(to_json(results), 1));
  write_file_atomically(call.out + "/table.md", markdown_table(results));
  return results;
}

void show_plan(const ReproduceCall& call) {
  use_threads(call.threads);
  const auto facts = facts_or_known(data_of(call.request));
  const auto plan = make_plan(call.request, facts);
  device_of(plan);
  print_rows(plan);
  print_tasks(make_tasks(call, plan, facts, known_of(call, plan)));
}

void reproduce_table(const ReproduceCall& call) {
  ignore_closed_pipes();
  use_threads(call.threads);
  const auto facts = facts_of(open_to_train(data_of(call.request)));
  const auto plan = make_plan(call.request, facts);
  const auto device = device_of(plan);
  const auto known = known_of(call, plan);
  const auto tasks = make_tasks(call, plan, facts, known);
  print_rows(plan);
  print_tasks(tasks);
  std::fflush(stdout);
  require_all_fit(tasks);
  // Fails now, not after hours of training, if --out cannot be written.
  auto results = write_all(call, plan, known);
  Overall overall(tasks);
  for (size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].finished()) continue;
    const auto position = fmt::format("{} of {}", t + 1, tasks.size());
    overall.begin_task(position);
    train_task(call, tasks[t],
               overall.events_of(tasks[t], position, [&] { write_all(call, plan, known); }));
    overall.finish_task(tasks[t]);
    results = write_all(call, plan, known);
  }
  require_final_figures(call, plan, known);
  fmt::print("\n{}\n{}/results.json, table.md and curves\n", markdown_figures(results), call.out);
  std::fflush(stdout);
  if (write_report(call, results, device)) fmt::print("{}/report.html\n", call.out);
}

}  // namespace translution::cli
