#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "translution/models/options.h"

namespace translution::cli {

/// One row of a table of the paper: its model and the printed figures.
struct PaperRow {
  ModelOptions model;
  std::optional<std::string> printed_millions;  ///< parameters as printed; absent: not printed
  std::optional<int64_t> parameters;            ///< count from the paper's description, if complete
  /// Figures by metric, in the order of the paper; absent: not reported.
  std::vector<std::pair<std::string, std::optional<double>>> results;
  bool out_of_memory;  ///< the paper could not train this model

  /// Does `count` round to the printed figure? Nothing if none is printed.
  std::optional<bool> agrees(int64_t count) const;
};

struct PaperTable {
  std::string name, title;
  std::vector<PaperRow> rows;
};

/// Names of all tables, in the order of the paper.
std::vector<std::string> paper_table_names();

/// The table called `name`. Throws for an unknown name and suggests the nearest one.
PaperTable paper_table(const std::string& name);

}  // namespace translution::cli
