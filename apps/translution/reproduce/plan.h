#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/translution/paper/tables.h"
#include "apps/translution/reproduce/recipe.h"

namespace translution::cli {

/// What is asked for.
struct PlanRequest {
  std::string table;
  Budget budget = Budget::quick;
  std::vector<std::string> rows = {};  ///< numbers from 1, "2-4", models or methods; none: all
  std::vector<uint64_t> seeds = {0};
  std::string data = {};  ///< empty: the budget's
  /// Of data and training, and "init"; over the budget's.
  std::map<std::string, std::string> settings = {};
};

/// One training, whose directory has its name. Equal settings have equal names: figures and tables
/// that need the same training share it.
struct Training {
  std::string name;
  ModelOptions model;
  DataOptions data;
  TrainOptions train;
  int64_t steps = 0;  ///< in all

  /// All settings that decide how it ends.
  SettingTexts texts() const;
};

/// A figure of a row: what it reads from which training.
struct Figure {
  std::string name;             ///< "static_dynamic", "top1", "perplexity"
  std::optional<double> paper;  ///< absent: not reported
  size_t training;              ///< which of the plan's
  std::string set, metric;      ///< in its log: "dynamic", "top1"
};

struct PlanRow {
  size_t number;  ///< in the paper's table, from 1
  PaperRow paper;
  ModelOptions model;  ///< as it is trained
  uint64_t seed;
  std::vector<std::string> cuts;  ///< what differs from the whole recipe on the paper's data
  std::vector<Figure> figures;
};

struct ReproducePlan {
  PaperTable table;
  Budget budget;
  std::vector<PlanRow> rows;
  std::vector<Training> trainings;  ///< in the order in which they are to be run
};

/// The data of a request before its facts are known; its length of text is that of the table's
/// models.
DataOptions data_of(const PlanRequest& request);

/// Which trainings a table takes, and which figure comes from which. Refuses rows that the table
/// does not have and data that its models cannot learn from.
ReproducePlan make_plan(const PlanRequest& request, const DataFacts& facts);

/// Time and memory that a training will take.
struct Forecast {
  double seconds, bytes;
};

/// `rate` is that of the machine's products in the training's precision, in GFLOP/s; `share` how
/// much of it training reaches, 0: what its method is known to reach.
Forecast forecast(const Training& training, const DataFacts& facts, double rate, double share = 0);

}  // namespace translution::cli
