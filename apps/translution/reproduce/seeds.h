#pragma once

#include <set>
#include <vector>

#include "apps/translution/reproduce/results.h"

namespace translution::cli {

/// A row of the paper as it was trained in one way, with one seed or more.
struct SeedGroup {
  const RowResult* row;  ///< its first
  std::set<uint64_t> seeds;
  std::vector<std::vector<double>> values;  ///< of each figure, from trainings that are finished

  /// The most seeds that a figure has.
  size_t finished() const;
};

/// In the order of the results, into which they point. A seed is but once in a group.
std::vector<SeedGroup> group_seeds(const Results& results);

double mean_of(const std::vector<double>& values);

/// Do these values of two rows leave open which one is better? They do where their means lie within
/// a point, and one of them has a single seed or their ranges overlap.
bool is_open(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace translution::cli
