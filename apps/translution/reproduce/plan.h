#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/translution/paper/tables.h"
#include "apps/translution/reproduce/recipe.h"

namespace translution::cli {

/// The arguments of `translution reproduce`.
struct PlanRequest {
  std::string table;
  Budget budget = Budget::quick;
  std::vector<std::string> rows = {};  ///< numbers from 1, "2-4", models or methods; empty: all
  std::vector<uint64_t> seeds = {0};
  std::string data = {};  ///< empty: the data of the budget
  /// Options of data and training, and "init"; they replace those of the budget.
  std::map<std::string, std::string> settings = {};
};

/// One training. Its name is that of its directory. Equal options give equal names, so figures and
/// tables that need the same training share it.
struct Training {
  std::string name;
  ModelOptions model;
  DataOptions data;
  TrainOptions train;
  int64_t steps = 0;  ///< in total

  /// All options that affect the result.
  SettingTexts texts() const;
};

/// A figure of a row, and where it comes from.
struct Figure {
  std::string name;             ///< "static_dynamic", "top1", "perplexity"
  std::optional<double> paper;  ///< absent: not reported
  size_t training;              ///< index into the plan's trainings
  std::string set, metric;      ///< of its entry in the log: "dynamic", "top1"
};

struct PlanRow {
  size_t number;  ///< in the paper's table, from 1
  PaperRow paper;
  ModelOptions model;  ///< the model to train
  uint64_t seed;
  std::vector<std::string> cuts;  ///< differences from the full recipe on the paper's data
  std::vector<Figure> figures;
};

struct ReproducePlan {
  PaperTable table;
  Budget budget;
  std::vector<PlanRow> rows;
  std::vector<Training> trainings;  ///< in the order in which they run
};

/// The data of a request. The sequence length is that of the table's models.
DataOptions data_of(const PlanRequest& request);

/// The trainings that a table needs, and the training of each figure. Throws for rows that the
/// table does not have and for data of another kind than its models'.
ReproducePlan make_plan(const PlanRequest& request, const DataFacts& facts);

/// Estimated time and memory of a training.
struct Forecast {
  double seconds, bytes;
};

/// `rate`: GFLOP/s of the machine's matrix products in the training's precision. `share`: the
/// fraction of it that training reaches; 0: the measured share of the method.
Forecast forecast(const Training& training, const DataFacts& facts, double rate, double share = 0);

}  // namespace translution::cli
