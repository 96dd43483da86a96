#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdlib>

#include "measure.h"
#include "progress.h"
#include "reproduce.h"
#include "table.h"
#include "training_run.h"
#include "translution/core/error.h"
#include "translution/core/random.h"
#include "translution/models/cost.h"
#include "translution/reproduce/cuts.h"
#include "translution/reproduce/run_record.h"
#include "translution/train/adamw.h"
#include "version.h"

namespace translution::cli {
namespace {

constexpr double kSpare = 0.5e9;  // bytes for the program itself and for temporaries
constexpr double kPerWeight = 4;  // bytes

// How a step fits into memory: the batch in parts; moments made before it, as from the second step
// on they are there, or, if that is too much, each when its parameter is updated, while gradients
// that were used go.
struct StepPlan {
  int64_t batch, parts;
  bool moments_first;
};

double bytes_of(const ModelOptions& model, const StepPlan& plan) {
  const auto cost = model_cost(model, (plan.batch + plan.parts - 1) / plan.parts);
  if (plan.moments_first) return cost.training_bytes + kSpare;
  const double weights = kPerWeight * static_cast<double>(cost.parameters);
  return std::max(3 * weights, cost.training_bytes - 2 * weights) + kSpare;
}

// The fewest parts that fit, with moments first if they can be; the leanest plan where nothing
// fits.
StepPlan plan_step(const ModelOptions& model, int64_t batch, double memory_gb) {
  for (const bool moments_first : {true, false})
    for (int64_t parts = 1; parts <= batch; parts *= 2)
      if (const StepPlan plan{batch, parts, moments_first};
          bytes_of(model, plan) <= 1e9 * memory_gb)
        return plan;
  return {batch, batch, false};
}

// A step that is to be taken.
struct Task {
  const PlanRow* row;
  TrainOptions train;
  StepPlan plan;
  double bytes, seconds;  // as far as can be told
};

Task make_task(const ReproducePlan& plan, const PlanRow& row, double memory_gb, double sgemm) {
  auto training = plan.trainings[row.figures.front().training];
  training.steps = 1;
  const int64_t batch = training.train.batch;
  const auto step = plan_step(row.model, batch, memory_gb);
  const DataFacts one_batch{batch};
  return {&row, training.train, step, bytes_of(row.model, step),
          forecast(training, one_batch, sgemm).seconds};
}

std::vector<Task> make_tasks(const ReproduceCall& call, const ReproducePlan& plan) {
  const double sgemm = sgemm_rate(call.threads);
  std::vector<Task> tasks;
  for (const auto& row : plan.rows) tasks.push_back(make_task(plan, row, call.memory_gb, sgemm));
  return tasks;
}

bool fits(const Task& task, const ReproduceCall& call) {
  return task.bytes <= 1e9 * call.memory_gb;
}

void print_tasks(const ReproduceCall& call, const std::vector<Task>& tasks) {
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
               in_bytes(task.bytes),
               fits(task, call) ? "" : fmt::format("more than --memory, {} GB", call.memory_gb)});
  }
  fmt::print("{}\n", table.str());
  std::fflush(stdout);
}

void require_all_fit(const ReproduceCall& call, const std::vector<Task>& tasks) {
  for (const auto& task : tasks)
    ensure(fits(task, call), task.row->model.name(), " with ",
           name_of(kMethods, task.row->model.position.method), ": a step takes ",
           in_bytes(task.bytes), " at least; wanted no more than --memory, ", call.memory_gb,
           " GB; name other rows with --rows");
}

Batch random_batch(const ModelOptions& model, int64_t batch) {
  if (model.family == Family::gpt)
    return {torch::randint(model.vocabulary, {batch, model.length}, torch::kLong),
            torch::randint(model.vocabulary, {batch, model.length}, torch::kLong)};
  return {torch::randn({batch, model.channels, model.image_size[0], model.image_size[1]}),
          torch::randint(model.classes, {batch}, torch::kLong)};
}

// The first batch of the data, or random numbers where none are named.
Batch batch_for(const ReproduceCall& call, const ModelOptions& model, int64_t batch) {
  if (call.request.data.empty()) return random_batch(model, batch);
  const auto source = open_data(data_of(call.request));
  require(model.family == Family::gpt
              ? source.vocabulary > 0 && source.vocabulary <= model.vocabulary
              : source.image == model.image_size && source.channels == model.channels &&
                    static_cast<int64_t>(source.classes.size()) <= model.classes,
          call.request.data, " does not fit ", model.name(), "; leave --data out for random data");
  BatchOrder order(source.train->size(), training_order(batch, 0));
  return source.train->load(*order.next());
}

double backward(Network& network, const Batch& batch, int64_t parts) {
  Progress progress(parts, stderr);
  progress.update(0, "");
  double loss = 0;
  const int64_t samples = batch.input.size(0);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = samples * part / parts, count = samples * (part + 1) / parts - begin;
    const auto mean = loss_of(network.forward(batch.input.narrow(0, begin, count)),
                              batch.target.narrow(0, begin, count)) *
                      (static_cast<double>(count) / static_cast<double>(samples));
    loss += mean.item<double>();
    mean.backward();
    progress.update(part + 1, "");
  }
  return loss;
}

// AdamW for each parameter by itself, so that its gradient can go before the next has moments.
void update(const std::vector<torch::Tensor>& parameters, std::vector<AdamW>& optimizers,
            const TrainOptions& options) {
  const double norm = gradient_norm(parameters);
  ensure(std::isfinite(norm), "one step: the norm of the gradients is ", norm);
  const double scale = options.clip > 0 && norm > options.clip ? options.clip / norm : 1.0;
  for (size_t p = 0; p < parameters.size(); ++p) {
    auto& gradient = parameters[p].mutable_grad();
    if (!gradient.defined()) continue;
    gradient.mul_(scale);
    if (optimizers.size() <= p) optimizers.emplace_back(AdamW({parameters[p]}, {}));
    optimizers[p].options.lr = options.lr;
    optimizers[p].options.weight_decay = options.weight_decay;
    optimizers[p].step();
    gradient.reset();
  }
}

StepResult take_step(const ReproduceCall& call, const Task& task) {
  const auto& model = task.row->model;
  const auto& plan = task.plan;
  StepResult result;
  const auto peak = peak_bytes([&] {
    torch::manual_seed(Random({task.row->seed}).bits());
    Network network(model);
    const auto batch = batch_for(call, model, plan.batch);
    const auto parameters = network.module().parameters();
    std::vector<AdamW> optimizers;
    if (plan.moments_first)
      for (const auto& parameter : parameters) optimizers.emplace_back(AdamW({parameter}, {}));
    const Stopwatch watch;
    result.loss = backward(network, batch, plan.parts);
    update(parameters, optimizers, task.train);
    result.seconds = watch.milliseconds() / 1e3;
  });
  ensure(peak.has_value(), "one step: this system does not tell how much memory it takes");
  result.parameters = model_cost(model).parameters;
  result.batch = plan.batch, result.parts = plan.parts;
  result.peak_bytes = *peak;
  result.data = call.request.data.empty() ? "random" : call.request.data;
  if (!plan.moments_first) result.data += "; moments made during the update";
  result.command =
      row_command(call, *task.row, fmt::format("--one-step --memory {}", call.memory_gb));
  result.machine = machine_text(call.threads), result.commit = kCommit;
  return result;
}

// The rows asked for, or those that the paper could not train.
ReproducePlan plan_of(const ReproduceCall& call) {
  const auto table = paper_table(call.request.table);
  auto request = call.request;
  request.budget = Budget::paper;
  if (request.rows.empty())
    for (size_t number = 1; number <= table.rows.size(); ++number)
      if (table.rows[number - 1].out_of_memory) request.rows.push_back(std::to_string(number));
  require(!request.rows.empty(), "--one-step: the paper could train all rows of ", table.name,
          "; name some with --rows");
  return make_plan(request, paper_data(subject_of(table.rows.front().model)).facts);
}

}  // namespace

void show_steps(const ReproduceCall& call) {
  at::set_num_threads(call.threads);
  const auto plan = plan_of(call);
  print_tasks(call, make_tasks(call, plan));
}

void reproduce_steps(const ReproduceCall& call) {
  at::set_num_threads(call.threads);
  // Queries and keys are computed again rather than kept, unless said otherwise.
  setenv("TRANSLUTION_WORKSPACE", "0", /*overwrite=*/0);
  const auto plan = plan_of(call);
  const auto tasks = make_tasks(call, plan);
  print_tasks(call, tasks);
  require_all_fit(call, tasks);
  for (const auto& task : tasks) {
    auto result = describe_row(plan, *task.row);
    result.cuts.clear();  // those of trainings
    result.one_step = take_step(call, task);
    fmt::print("{} with {}: {:.1f} s, peak {}, loss {:.4f}\n", result.model, result.method,
               result.one_step->seconds, in_bytes(result.one_step->peak_bytes),
               result.one_step->loss);
    std::fflush(stdout);
    write_results(call, {plan.table.name, plan.table.title, {result}});
  }
}

}  // namespace translution::cli
