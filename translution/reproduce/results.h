#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "translution/reproduce/plan.h"

namespace translution {

/// What a training has come to.
struct RunResult {
  std::string name;
  int64_t step = 0, steps = 0;  ///< done and in all; equal: finished
  int64_t seen = 0;             ///< images, or tokens
  double seconds = 0;           ///< of training, without evaluation
  std::string machine, commit;  ///< of the program that trained it last
  bool finished() const { return step == steps; }
};

struct FigureResult {
  std::string name;
  std::optional<double> paper, ours;  ///< percent, or perplexity; absent: not reported, or not yet
  int64_t step = 0;                   ///< at which ours was measured
  std::string run;                    ///< the name of its training
  std::string set, metric;            ///< where it stands in the training's log
};

/// One step of training at the paper's batch, for models that the paper could not train.
struct StepResult {
  int64_t parameters = 0;
  int64_t batch = 0, parts = 0;  ///< samples of the step, and in how many parts
  double seconds = 0, peak_bytes = 0, loss = 0;
  std::string data, command, machine, commit;
};

/// A row of the paper's table with what was measured here; one for each seed.
struct RowResult {
  size_t number = 0;
  std::string model, method, variant;  ///< the paper's; variant: what else its rows differ in
  std::optional<std::string> paper_millions;
  int64_t parameters = 0;  ///< of the model as it was trained
  uint64_t seed = 0;
  std::string budget, command;  ///< command: empty where nothing was trained
  std::vector<std::string> cuts;
  std::vector<FigureResult> figures;
  std::vector<RunResult> runs;
  std::optional<StepResult> one_step;
};

struct Results {
  std::string table, title;
  std::vector<RowResult> rows;  ///< by number, cuts and seed
};

/// What the row is, in the paper's words.
RowResult describe_row(const ReproducePlan& plan, const PlanRow& row);

/// What the logs below `runs` say of the plan's rows. `command` makes a row's own command.
Results collect_results(const ReproducePlan& plan, const std::string& runs,
                        const std::function<std::string(const PlanRow&)>& command);

/// A value of a log as a figure: accuracies in percent.
double figure_value(const std::string& metric, double logged);

/// `fresh` over `older`, whose other rows stay; so do the same rows where they were trained with
/// other settings. Trainings and the one step of a row do not replace each other.
Results merge_results(const Results& older, const Results& fresh);

nlohmann::ordered_json to_json(const Results& results);
/// Refuses what is no results file, with its path.
Results parse_results(const std::string& json, const std::string& path);

}  // namespace translution
