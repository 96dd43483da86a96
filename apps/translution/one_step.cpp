#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "apps/translution/reproduce/cuts.h"
#include "apps/translution/reproduce/run_record.h"
#include "measure.h"
#include "progress.h"
#include "reproduce.h"
#include "table.h"
#include "threads.h"
#include "translution/core/error.h"
#include "translution/core/memory.h"
#include "translution/core/random.h"
#include "translution/models/cost.h"
#include "translution/nn/generator.h"
#include "translution/ops/products.h"
#include "translution/train/data_fit.h"
#include "translution/train/device.h"
#include "translution/train/step.h"
#include "version.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr double kSpare = 0.5e9;  // bytes for the program itself, accumulators and temporaries
constexpr double kPerWeight = 4;  // bytes

// How a step is made to fit into memory: the batch in parts; moments allocated up front, as from
// the second step on, or, if that is too much, in the update (AdamW::Memory::lean).
struct StepPlan {
  int64_t batch, parts;
  bool moments_first;
};

double bytes_of(const ModelOptions& model, const StepPlan& plan) {
  const auto cost = model_cost(model, (plan.batch + plan.parts - 1) / plan.parts);
  const double bytes = cost.training_bytes - cost.accumulator_bytes - cost.work_bytes;
  if (plan.moments_first) return bytes + kSpare;
  const double weights = kPerWeight * static_cast<double>(cost.parameters);
  return std::max(3 * weights, bytes - 2 * weights) + kSpare;
}

// The fewest parts that fit, if possible with moments first. If nothing fits, the leanest plan.
StepPlan plan_step(const ModelOptions& model, int64_t batch, double memory_gb) {
  for (const bool moments_first : {true, false})
    for (int64_t parts = 1; parts <= batch; parts *= 2)
      if (const StepPlan plan{batch, parts, moments_first};
          bytes_of(model, plan) <= 1e9 * memory_gb)
        return plan;
  return {batch, batch, false};
}

struct StepTask {
  const PlanRow* row;
  TrainOptions train;
  StepPlan plan;
  double bytes, seconds;  // estimates
};

StepTask make_task(const ReproducePlan& plan, const PlanRow& row, double memory_gb, double rate) {
  auto training = plan.trainings[row.figures.front().training];
  training.steps = 1;
  const int64_t batch = training.train.batch;
  const auto step = plan_step(row.model, batch, memory_gb);
  const DataFacts one_batch{batch};
  return {&row, training.train, step, bytes_of(row.model, step),
          forecast(training, one_batch, rate).seconds};
}

std::vector<StepTask> make_tasks(const ReproduceCall& call, const ReproducePlan& plan) {
  const double rate =
      ProductRate(plan.trainings.front().train.precision, call.threads).best_gflops();
  std::vector<StepTask> tasks;
  for (const auto& row : plan.rows) tasks.push_back(make_task(plan, row, call.memory_gb, rate));
  return tasks;
}

// Why a step does not fit into memory; empty if it does.
std::string too_much(const StepTask& task, const ReproduceCall& call) {
  if (task.bytes > 1e9 * call.memory_gb)
    return fmt::format("more than --memory, {} GB", call.memory_gb);
  if (task.bytes > static_cast<double>(usable_bytes()))
    return fmt::format("more than the usable {}", in_bytes(static_cast<double>(usable_bytes())));
  return "";
}

void print_tasks(const ReproduceCall& call, const std::vector<StepTask>& tasks) {
  Table table({{"row", Align::right},
               {"model"},
               {"method"},
               {"parameters", Align::right},
               {"batch", Align::right},
               {"parts", Align::right},
               {"time", Align::right},
               {"memory", Align::right},
               {""}});
  for (const auto& task : tasks) {
    const auto& model = task.row->model;
    table.add({std::to_string(task.row->number), model.name(),
               name_of(kMethods, model.position.method), grouped(model_cost(model).parameters),
               grouped(task.plan.batch), grouped(task.plan.parts), duration_text(task.seconds),
               in_bytes(task.bytes), too_much(task, call)});
  }
  fmt::print("{}\n", table.str());
  std::fflush(stdout);
}

void require_all_fit(const ReproduceCall& call, const std::vector<StepTask>& tasks) {
  for (const auto& task : tasks)
    ensure(too_much(task, call).empty(), task.row->model.name(), " with ",
           name_of(kMethods, task.row->model.position.method), ": a step takes ",
           in_bytes(task.bytes), " at least, ", too_much(task, call),
           "; name other rows with --rows");
}

void require_fits(const DataSource& source, const StepTask& task, const std::string& name) {
  require_data_fits(task.row->model, source, name, /*spare_classes=*/true);
  require(source.train->size() >= task.plan.batch, name, " has ", source.train->size(),
          " samples, expected at least the batch, ", task.plan.batch,
          "; lower --batch, or use other --data");
}

// Without --data: nothing, and the step uses random numbers.
std::optional<DataSource> open_for(const ReproduceCall& call, const std::vector<StepTask>& tasks) {
  if (call.request.data.empty()) return std::nullopt;
  auto source = open_to_train(data_of(call.request));
  for (const auto& task : tasks) require_fits(source, task, call.request.data);
  return source;
}

Batch batch_of(const std::optional<DataSource>& source, const StepTask& task,
               const at::Generator& random) {
  if (!source) return random_batch(task.row->model, task.plan.batch, random);
  BatchOrder order(source->train->size(), training_order(task.plan.batch, 0));
  auto batch = source->train->load(*order.next());
  // Targets of mixed images have a share for each class of the data, which may have fewer classes
  // than the model.
  if (batch.target.is_floating_point())
    batch.target =
        torch::constant_pad_nd(batch.target, {0, task.row->model.classes - batch.target.size(1)});
  return batch;
}

void measure_step(const std::optional<DataSource>& source, const StepTask& task,
                  StepResult& result) {
  const auto random = seeded_generator(Random({task.row->seed}).bits());
  Network network(task.row->model, random);
  const auto batch = batch_of(source, task, random);
  AdamW optimizer(network.module().parameters(), adamw_options(task.train),
                  task.plan.moments_first ? AdamW::Memory::ready : AdamW::Memory::lean);
  auto options = step_options(task.train);
  options.parts = task.plan.parts;
  Progress progress(task.plan.parts, stderr);
  progress.update(0, "");
  const Stopwatch watch;
  const auto outcome = train_step(network, optimizer, batch, options, random,
                                  [&](int64_t parts) { progress.update(parts, ""); });
  result.seconds = watch.milliseconds() / 1e3;
  ensure(std::isfinite(outcome.loss) && std::isfinite(outcome.norm), "one step: the loss is ",
         outcome.loss, ", the norm of the gradients ", outcome.norm);
  result.loss = outcome.loss;
}

StepResult take_step(const ReproduceCall& call, const PaperTable& table,
                     const std::optional<DataSource>& source, const StepTask& task) {
  StepResult result;
  static_cast<RowName&>(result) = name_row(table, *task.row);
  const auto peak = peak_bytes([&] { measure_step(source, task, result); });
  ensure(peak.has_value(),
         "one step: this system does not report peak memory; expected Linux with /proc");
  result.parameters = model_cost(task.row->model).parameters;
  result.batch = task.plan.batch, result.parts = task.plan.parts;
  result.peak_bytes = *peak;
  result.data = source ? call.request.data : "random";
  if (!task.plan.moments_first) result.data += "; moments made during the update";
  result.command =
      row_command(call, *task.row, fmt::format("--one-step --memory {}", call.memory_gb));
  result.machine = machine_text(call.threads), result.commit = kCommit;
  result.precision = name_of(kPrecisions, task.row->model.precision);
  return result;
}

void check_settings(const PlanRequest& request) {
  constexpr const char* kOfAStep[] = {"batch",           "lr",        "weight-decay",
                                      "beta2",           "clip",      "init",
                                      "label-smoothing", "precision", "device"};
  for (const auto& [name, text] : request.settings)
    require(std::find(std::begin(kOfAStep), std::end(kOfAStep), name) != std::end(kOfAStep),
            "--one-step: --", name, " has no effect on a single step; leave it out");
}

// The plan for the rows of --rows, by default those that ran out of memory in the paper.
ReproducePlan plan_of(const ReproduceCall& call) {
  const auto table = paper_table(call.request.table);
  check_settings(call.request);
  auto request = call.request;
  request.budget = Budget::paper;
  if (request.rows.empty())
    for (size_t number = 1; number <= table.rows.size(); ++number)
      if (table.rows[number - 1].out_of_memory) request.rows.push_back(std::to_string(number));
  require(!request.rows.empty(), "--one-step: the paper could train all rows of ", table.name,
          "; name some with --rows");
  auto plan = make_plan(request, paper_data(subject_of(table.rows.front().model)).facts);
  require(find_device(plan.trainings.front().train.device).is_cpu(),
          "--one-step measures the memory of this process; expected --device cpu");
  for (auto& row : plan.rows) row.model.workspace = 0;  // recompute encodings to save memory
  return plan;
}

}  // namespace

void show_steps(const ReproduceCall& call) {
  use_threads(call.threads);
  const auto plan = plan_of(call);
  const auto tasks = make_tasks(call, plan);
  try {
    open_for(call, tasks);  // refuses data that does not fit
  } catch (const std::runtime_error& error) {
    if (!known_data(call.request.data)) throw;  // data of a recipe may be fetched later
    fmt::print("{}\n", error.what());
  }
  print_tasks(call, tasks);
}

void reproduce_steps(const ReproduceCall& call) {
  use_threads(call.threads);
  const auto plan = plan_of(call);
  const auto tasks = make_tasks(call, plan);
  const auto source = open_for(call, tasks);
  print_tasks(call, tasks);
  require_all_fit(call, tasks);
  Results results{plan.table.name, plan.table.title};
  write_results(call, results);  // fails now, not after a long step, if --out cannot be written
  for (const auto& task : tasks) {
    const auto step = take_step(call, plan.table, source, task);
    fmt::print("{} with {}: {:.1f} s, peak {}, loss {:.4f}\n", step.model, step.method,
               step.seconds, in_bytes(step.peak_bytes), step.loss);
    std::fflush(stdout);
    results.steps.push_back(step);
    write_results(call, results);
  }
}

}  // namespace translution::cli
