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

/// The state of a training.
struct RunResult {
  std::string name;
  int64_t step = 0, steps = 0;  ///< done, and planned; equal if finished
  int64_t seen = 0;             ///< images or tokens
  double seconds = 0;           ///< training time, without evaluation
  std::string machine, commit;  ///< of the last call that trained it
  std::string precision = "float32";
  bool finished() const { return step == steps; }
};

struct FigureResult {
  std::string name;
  std::optional<double> paper, ours;  ///< percent, or perplexity; absent: not known
  int64_t step = 0;                   ///< at which `ours` was measured
  std::string run;                    ///< name of its training
  std::string set, metric;            ///< of its entry in the training's log
};

/// A row of the paper's table, with the paper's model and method.
struct RowName {
  size_t number = 0;
  std::string model, method, variant;  ///< variant: other options that differ between rows
  uint64_t seed = 0;
};

/// A row as it was trained here: one for each seed and each way of training.
struct RowResult : RowName {
  std::optional<std::string> paper_millions;
  int64_t parameters = 0;  ///< of the trained model
  std::string budget, command;
  std::vector<std::string> cuts;  ///< differences from the full recipe, see cuts.h
  std::vector<FigureResult> figures;
  std::vector<RunResult> runs;
};

/// One step of training at the paper's batch, for models that the paper could not train.
struct StepResult : RowName {
  int64_t parameters = 0;
  int64_t batch = 0, parts = 0;  ///< samples per step, and the parts they are split into
  double seconds = 0, peak_bytes = 0, loss = 0;
  std::string data, command, machine, commit;
  std::string precision = "float32";
};

struct Results {
  std::string table, title;
  std::vector<RowResult> rows = {};    ///< by cuts, number and seed
  std::vector<StepResult> steps = {};  ///< by number, seed, batch and precision
};

/// The cuts that not all rows have: "1 of 20 passes; lr 0.001 instead of 0.0005".
std::string special_cuts(const RowResult& row, const Results& results);

RowName name_row(const PaperTable& table, const PlanRow& row);

/// A finished training of existing results, with its figures.
struct KnownRun {
  std::string table;  ///< of the results that contain it
  RunResult run;
  std::vector<FigureResult> figures;
};

/// By training name.
using KnownRuns = std::map<std::string, KnownRun>;

/// The planned trainings that some results contain finished, with every figure that the plan
/// needs.
KnownRuns known_runs(const ReproducePlan& plan, const std::vector<Results>& all);

/// Results of the plan's trainings: from `known`, otherwise from their logs below `runs`. `command`
/// returns the command that repeats a row. Rows without a single step are left out.
Results collect_results(const ReproducePlan& plan, const std::string& runs,
                        const std::function<std::string(const PlanRow&)>& command,
                        const KnownRuns& known = {});

/// A logged value as a figure: accuracies in percent.
double figure_value(const std::string& metric, double logged);

/// The rows of both. Where both contain the same training, that of `fresh` replaces that of `older`
/// unless it has done fewer steps. Rows trained with other options are different rows.
Results merge_results(const Results& older, const Results& fresh);

nlohmann::ordered_json to_json(const Results& results);
/// Throws with `path` if the text is not a results file.
Results parse_results(const std::string& json, const std::string& path);
/// All results of a directory, sorted by file name.
std::vector<Results> read_results(const std::string& directory);

}  // namespace translution::cli
