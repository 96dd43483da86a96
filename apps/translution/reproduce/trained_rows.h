#pragma once

#include <set>
#include <string>
#include <vector>

#include "apps/translution/reproduce/results.h"

namespace translution::cli {

/// A row of the paper's table trained in one way, with one seed or more.
struct TrainedRow {
  const RowResult* row;  ///< of its first seed
  std::vector<std::string> cuts;
  std::set<uint64_t> seeds;
  std::vector<std::vector<double>> values;  ///< [figure][seed], finished trainings only

  /// The largest number of seeds that a figure has.
  size_t finished() const;
};

/// The rows of `results`, to which they point, in the same order. A seed that occurs twice counts
/// once.
std::vector<TrainedRow> trained_rows(const Results& results);

/// The rows grouped by their cuts, the groups ordered by the samples that they have seen.
std::vector<std::vector<TrainedRow>> group_by_cuts(const std::vector<TrainedRow>& rows);

/// One of `rows` for each row of the paper's table: the one that has seen the most samples, then
/// the one with the fewest cuts.
std::vector<TrainedRow> best_trained(const std::vector<TrainedRow>& rows);

/// Two rows of the same table row that differ in one option.
struct OptionPair {
  TrainedRow recipe, changed;  ///< their cuts are without that of the option
  std::string recipe_value, changed_value;
};

/// The pairs that differ in `option` and nothing else: a cut "init scaled instead of authors".
std::vector<OptionPair> pairs_differing_in(const std::string& option, const Results& results);

/// The cuts that all rows share.
std::vector<std::string> shared_cuts(const std::vector<TrainedRow>& rows);

double mean_of(const std::vector<double>& values);

/// Sets of rows whose order by a figure is open, each as indices into `rows`. The order of two rows
/// is open if they have the same model and cuts, their means are less than a point apart, and one
/// of them has a single seed or their ranges overlap. All pairs of a set are open, and every open
/// pair is in a set.
std::vector<std::vector<size_t>> open_sets(const std::vector<TrainedRow>& rows, size_t figure);

}  // namespace translution::cli
