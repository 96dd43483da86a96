#include "apps/translution/reproduce/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>

#include "apps/translution/reproduce/run_record.h"
#include "translution/core/error.h"
#include "translution/io/file.h"
#include "translution/models/cost.h"
#include "translution/models/settings.h"
#include "translution/train/metrics.h"

namespace translution::cli {

using namespace detail;

namespace {

// ---------------------------------------------------------------------------------- the logs

std::vector<Metrics> log_of(const std::string& run) {
  const std::string path = run + "/metrics.jsonl";
  return std::filesystem::exists(path) ? read_metrics(path) : std::vector<Metrics>();
}

std::optional<double> value_in(const Metrics& moment, const std::string& name) {
  for (const auto& [key, value] : moment.values)
    if (key == name) return value;
  return std::nullopt;
}

// Samples per second.
std::optional<double> speed_at(const Metrics& moment, const ModelOptions& model) {
  if (const auto samples = value_in(moment, "samples_per_s")) return samples;
  const auto tokens = value_in(moment, "tokens_per_s");
  if (!tokens) return std::nullopt;
  return *tokens / static_cast<double>(model.length);
}

// The log states the speed since the previous line.
double seconds_in(const std::vector<Metrics>& log, const Training& training) {
  double seconds = 0;
  int64_t before = 0;
  for (const auto& moment : log) {
    const auto speed = speed_at(moment, training.model);
    if (moment.split != "train" || !speed) continue;
    seconds += static_cast<double>((moment.step - before) * training.train.batch) / *speed;
    before = moment.step;
  }
  return seconds;
}

RunResult run_result(const Training& training, const std::string& directory) {
  const auto log = log_of(directory);
  const auto record = read_run_record(directory);
  RunResult run{training.name,
                0,
                training.steps,
                0,
                seconds_in(log, training),
                record.machine,
                record.commit,
                name_of(kPrecisions, training.train.precision)};
  for (const auto& moment : log) run.step = std::max(run.step, moment.step);
  run.seen = run.step * training.train.batch;
  if (training.model.family == Family::gpt) run.seen *= training.model.length;
  return run;
}

FigureResult not_measured(const Figure& figure, const Training& training) {
  return {figure.name, figure.paper, std::nullopt, 0, training.name, figure.set, figure.metric};
}

FigureResult figure_result(const Figure& figure, const Training& training,
                           const std::string& directory) {
  auto result = not_measured(figure, training);
  for (const auto& moment : log_of(directory)) {
    const auto value = value_in(moment, figure.metric);
    if (moment.split != figure.set || !value) continue;
    result.ours = figure_value(figure.metric, *value);
    result.step = moment.step;
  }
  return result;
}

// ------------------------------------------------------------------------------ known trainings

const FigureResult* find_figure(const KnownRun& known, const Figure& figure) {
  for (const auto& other : known.figures)
    if (other.set == figure.set && other.metric == figure.metric) return &other;
  return nullptr;
}

FigureResult figure_result(const Figure& figure, const Training& training, const KnownRun& known) {
  auto result = not_measured(figure, training);
  const auto* const found = find_figure(known, figure);
  result.ours = found->ours;
  result.step = found->step;
  return result;
}

// The finished runs of a row, with the figures of their last step.
std::vector<KnownRun> finished_runs(const Results& results, const RowResult& row) {
  std::vector<KnownRun> finished;
  for (const auto& run : row.runs) {
    if (!run.finished()) continue;
    finished.push_back({results.table, run, {}});
    for (const auto& figure : row.figures)
      if (figure.run == run.name && figure.step == run.steps && figure.ours)
        finished.back().figures.push_back(figure);
  }
  return finished;
}

bool has_all_figures(const KnownRun& known, const ReproducePlan& plan) {
  for (const auto& row : plan.rows)
    for (const auto& figure : row.figures)
      if (plan.trainings[figure.training].name == known.run.name && !find_figure(known, figure))
        return false;
  return true;
}

// ---------------------------------------------------------------------------------- the rows

// The options in which the rows of the table differ, besides model and method.
std::string variant_of(const PaperTable& table, const ModelOptions& model) {
  std::string variant;
  for (const auto& [name, text] : model_texts(model)) {
    if (name == "model" || name == "method") continue;
    const auto differs = [&, &name = name, &text = text](const PaperRow& row) {
      const auto texts = model_texts(row.model);
      const auto found = std::find_if(texts.begin(), texts.end(),
                                      [&](const auto& entry) { return entry.first == name; });
      return found == texts.end() || found->second != text;
    };
    if (std::any_of(table.rows.begin(), table.rows.end(), differs))
      variant += join(variant.empty() ? "" : ", ", name, " ", text);
  }
  return variant;
}

RowResult describe_row(const ReproducePlan& plan, const PlanRow& row) {
  RowResult result;
  static_cast<RowName&>(result) = name_row(plan.table, row);
  result.paper_millions = row.paper.printed_millions;
  result.parameters = model_cost(row.model).parameters;
  result.budget = name_of(kBudgets, plan.budget);
  result.cuts = row.cuts;
  return result;
}

// Rows trained in different ways have different runs.
bool same_row(const RowResult& a, const RowResult& b) {
  const auto same_run = [](const RunResult& x, const RunResult& y) { return x.name == y.name; };
  return a.number == b.number && a.seed == b.seed && a.figures.size() == b.figures.size() &&
         std::equal(a.runs.begin(), a.runs.end(), b.runs.begin(), b.runs.end(), same_run);
}

bool same_step(const StepResult& a, const StepResult& b) {
  return a.number == b.number && a.seed == b.seed && a.batch == b.batch &&
         a.precision == b.precision;
}

// Keeps older trainings that have done more steps than those of `row`.
void keep_further(const RowResult& older, RowResult& row) {
  for (size_t r = 0; r < row.runs.size(); ++r) {
    if (older.runs[r].step <= row.runs[r].step) continue;
    row.runs[r] = older.runs[r];
    for (size_t f = 0; f < row.figures.size(); ++f)
      if (row.figures[f].run == row.runs[r].name) row.figures[f] = older.figures[f];
  }
}

template <typename Row, typename Same, typename Keep>
void merge(const std::vector<Row>& older, const Same& same, const Keep& keep,
           std::vector<Row>& rows) {
  const size_t fresh = rows.size();
  for (const auto& row : older) {
    const auto end = rows.begin() + static_cast<std::ptrdiff_t>(fresh);
    const auto found =
        std::find_if(rows.begin(), end, [&](const Row& other) { return same(row, other); });
    found == end ? rows.push_back(row) : keep(row, *found);
  }
}

}  // namespace

std::string special_cuts(const RowResult& row, const Results& results) {
  std::string special;
  for (const auto& cut : row.cuts) {
    const auto has = [&](const RowResult& other) {
      return std::find(other.cuts.begin(), other.cuts.end(), cut) != other.cuts.end();
    };
    if (!std::all_of(results.rows.begin(), results.rows.end(), has))
      special += (special.empty() ? "" : "; ") + cut;
  }
  return special;
}

RowName name_row(const PaperTable& table, const PlanRow& row) {
  const auto& model = row.paper.model;
  return {row.number, model.name(), name_of(kMethods, model.position.method),
          variant_of(table, model), row.seed};
}

KnownRuns known_runs(const ReproducePlan& plan, const std::vector<Results>& all) {
  KnownRuns known;
  for (const auto& results : all)
    for (const auto& row : results.rows)
      for (auto& run : finished_runs(results, row)) {
        const auto planned = [&](const Training& training) {
          return training.name == run.run.name && training.steps == run.run.steps;
        };
        if (std::any_of(plan.trainings.begin(), plan.trainings.end(), planned) &&
            has_all_figures(run, plan))
          known.emplace(run.run.name, std::move(run));
      }
  return known;
}

Results collect_results(const ReproducePlan& plan, const std::string& runs,
                        const std::function<std::string(const PlanRow&)>& command,
                        const KnownRuns& known) {
  Results results{plan.table.name, plan.table.title};
  for (const auto& row : plan.rows) {
    auto result = describe_row(plan, row);
    result.command = command(row);
    for (const auto& figure : row.figures) {
      const auto& training = plan.trainings[figure.training];
      const std::string directory = runs + "/" + training.name;
      const auto found = known.find(training.name);
      const bool is_known = found != known.end();
      result.figures.push_back(is_known ? figure_result(figure, training, found->second)
                                        : figure_result(figure, training, directory));
      const auto same = [&](const RunResult& run) { return run.name == training.name; };
      if (std::none_of(result.runs.begin(), result.runs.end(), same))
        result.runs.push_back(is_known ? found->second.run : run_result(training, directory));
    }
    const bool begun = std::any_of(result.runs.begin(), result.runs.end(),
                                   [](const RunResult& run) { return run.step > 0; });
    if (begun) results.rows.push_back(std::move(result));
  }
  return results;
}

double figure_value(const std::string& metric, double logged) {
  return std::round((metric == "perplexity" ? 1e4 : 1e6) * logged) / 1e4;
}

Results merge_results(const Results& older, const Results& fresh) {
  Results merged = fresh;
  merge(older.rows, same_row, keep_further, merged.rows);
  merge(
      older.steps, same_step, [](const StepResult&, StepResult&) {}, merged.steps);
  std::sort(merged.rows.begin(), merged.rows.end(), [](const RowResult& a, const RowResult& b) {
    return std::tie(a.cuts, a.number, a.seed) < std::tie(b.cuts, b.number, b.seed);
  });
  std::sort(merged.steps.begin(), merged.steps.end(), [](const StepResult& a, const StepResult& b) {
    return std::tie(a.number, a.seed, a.batch, a.precision) <
           std::tie(b.number, b.seed, b.batch, b.precision);
  });
  return merged;
}

}  // namespace translution::cli
