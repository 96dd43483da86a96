#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/translution/reproduce/plan.h"

namespace translution::cli {

/// What a training has come to.
struct RunResult {
  std::string name;
  int64_t step = 0, steps = 0;  ///< done and in all; equal: finished
  int64_t seen = 0;             ///< images, or tokens
  double seconds = 0;           ///< of training, without evaluation
  std::string machine, commit;  ///< of the program that trained it last
  std::string precision = "float32";
  bool finished() const { return step == steps; }
};

struct FigureResult {
  std::string name;
  std::optional<double> paper, ours;  ///< percent, or perplexity; absent: not reported, or not yet
  int64_t step = 0;                   ///< at which ours was measured
  std::string run;                    ///< the name of its training
  std::string set, metric;            ///< where it stands in the training's log
};

/// Which row of the paper's table it is; model and method are the paper's.
struct RowName {
  size_t number = 0;
  std::string model, method, variant;  ///< variant: what else the rows differ in
  uint64_t seed = 0;
};

/// A row with what was trained here; one for each seed and each way of training.
struct RowResult : RowName {
  std::optional<std::string> paper_millions;
  int64_t parameters = 0;  ///< of the model as it was trained
  std::string budget, command;
  std::vector<std::string> cuts;
  std::vector<FigureResult> figures;
  std::vector<RunResult> runs;
};

/// One step of training at the paper's batch, for models that the paper could not train.
struct StepResult : RowName {
  int64_t parameters = 0;
  int64_t batch = 0, parts = 0;  ///< samples of the step, and in how many parts
  double seconds = 0, peak_bytes = 0, loss = 0;
  std::string data, command, machine, commit;
  std::string precision = "float32";
};

struct Results {
  std::string table, title;
  std::vector<RowResult> rows = {};    ///< by cuts, number and seed
  std::vector<StepResult> steps = {};  ///< by number, seed, batch and precision
};

/// What is cut of this row and not of all rows, as "1 of 20 passes; lr 0.001 instead of 0.0005".
std::string special_cuts(const RowResult& row, const Results& results);

RowName name_row(const PaperTable& table, const PlanRow& row);

/// A finished training of results that are there already, with the figures that come from it.
struct KnownRun {
  std::string table;  ///< whose results have it
  RunResult run;
  std::vector<FigureResult> figures;
};

/// By the names of their trainings.
using KnownRuns = std::map<std::string, KnownRun>;

/// The trainings of the plan that some of the results have finished, with every figure that the
/// plan needs of them.
KnownRuns known_runs(const ReproducePlan& plan, const std::vector<Results>& all);

/// What is known of the plan's trainings, or else what their logs below `runs` say. `command` makes
/// a row's own command.
Results collect_results(const ReproducePlan& plan, const std::string& runs,
                        const std::function<std::string(const PlanRow&)>& command,
                        const KnownRuns& known = {});

/// A value of a log as a figure: accuracies in percent.
double figure_value(const std::string& metric, double logged);

/// `fresh` over `older`, whose other rows stay; so do the same rows where they were trained with
/// other settings, and what has got further than in `fresh`.
Results merge_results(const Results& older, const Results& fresh);

nlohmann::ordered_json to_json(const Results& results);
/// Refuses what is no results file, with its path.
Results parse_results(const std::string& json, const std::string& path);
/// All results of a directory, in the order of the names of their files.
std::vector<Results> read_results(const std::string& directory);

}  // namespace translution::cli
