#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "translution/models/options.h"

namespace translution::cli {

/// One row of a table of the paper: the model it names and the figures it prints.
struct PaperRow {
  ModelOptions model;
  std::optional<std::string> printed_millions;  ///< parameters as printed; absent: not printed
  std::optional<int64_t> parameters;  ///< what the paper's description adds up to, where it tells
  /// By metric, in the order of the paper; absent: not reported.
  std::vector<std::pair<std::string, std::optional<double>>> results;
  bool out_of_memory;  ///< the paper could not train this model

  /// Does this count round to the printed figure? Nothing where none is printed.
  std::optional<bool> agrees(int64_t count) const;
};

struct PaperTable {
  std::string name, title;
  std::vector<PaperRow> rows;
};

/// Names of all tables, in the order of the paper.
std::vector<std::string> paper_table_names();

/// The table called `name`; unknown: one line with the nearest known name.
PaperTable paper_table(const std::string& name);

}  // namespace translution::cli
