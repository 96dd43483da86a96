#include "apps/translution/reproduce/seeds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace translution::cli {
namespace {

constexpr double kClose = 1.0;

bool takes(const SeedGroup& group, const RowResult& row) {
  return group.row->number == row.number && group.row->cuts == row.cuts &&
         group.seeds.count(row.seed) == 0;
}

bool is_final(const RowResult& row, const FigureResult& figure) {
  return figure.ours && std::any_of(row.runs.begin(), row.runs.end(), [&](const RunResult& run) {
           return run.name == figure.run && run.steps == figure.step;
         });
}

}  // namespace

size_t SeedGroup::finished() const {
  size_t most = 0;
  for (const auto& of_figure : values) most = std::max(most, of_figure.size());
  return most;
}

std::vector<SeedGroup> group_seeds(const Results& results) {
  std::vector<SeedGroup> groups;
  for (const auto& row : results.rows) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const SeedGroup& other) { return takes(other, row); });
    if (group == groups.end())
      group = groups.insert(groups.end(),
                            {&row, {}, std::vector<std::vector<double>>(row.figures.size())});
    group->seeds.insert(row.seed);
    for (size_t f = 0; f < row.figures.size(); ++f)
      if (is_final(row, row.figures[f])) group->values[f].push_back(*row.figures[f].ours);
  }
  return groups;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool is_open(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty() || std::abs(mean_of(a) - mean_of(b)) >= kClose) return false;
  if (a.size() == 1 || b.size() == 1) return true;
  const auto [least_a, most_a] = std::minmax_element(a.begin(), a.end());
  const auto [least_b, most_b] = std::minmax_element(b.begin(), b.end());
  return *least_a <= *most_b && *least_b <= *most_a;
}

}  // namespace translution::cli
