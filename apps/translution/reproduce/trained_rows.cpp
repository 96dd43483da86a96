#include "apps/translution/reproduce/trained_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace translution::cli {
namespace {

constexpr double kClose = 1.0;

bool has_cut(const TrainedRow& row, const std::string& cut) {
  return std::find(row.cuts.begin(), row.cuts.end(), cut) != row.cuts.end();
}

bool is_another_seed(const TrainedRow& trained, const RowResult& row) {
  return trained.row->number == row.number && trained.cuts == row.cuts &&
         trained.seeds.count(row.seed) == 0;
}

bool is_final(const RowResult& row, const FigureResult& figure) {
  return figure.ours && std::any_of(row.runs.begin(), row.runs.end(), [&](const RunResult& run) {
           return run.name == figure.run && run.steps == figure.step;
         });
}

int64_t samples_seen(const TrainedRow& trained) {
  int64_t samples = 0;
  for (const auto& run : trained.row->runs) samples += run.seen;
  return samples;
}

bool is_better_trained(const TrainedRow& a, const TrainedRow& b) {
  return std::make_tuple(samples_seen(a), -static_cast<int64_t>(a.cuts.size())) >
         std::make_tuple(samples_seen(b), -static_cast<int64_t>(b.cuts.size()));
}

// -------------------------------------------------------------------------------- open orders

// Less than a point apart, and with a single seed or overlapping ranges.
bool are_close(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty() || std::abs(mean_of(a) - mean_of(b)) >= kClose) return false;
  if (a.size() == 1 || b.size() == 1) return true;
  const auto [least_a, most_a] = std::minmax_element(a.begin(), a.end());
  const auto [least_b, most_b] = std::minmax_element(b.begin(), b.end());
  return *least_a <= *most_b && *least_b <= *most_a;
}

bool is_open(const TrainedRow& a, const TrainedRow& b, size_t figure) {
  return a.row->model == b.row->model && a.cuts == b.cuts &&
         a.row->figures[figure].run != b.row->figures[figure].run &&
         are_close(a.values[figure], b.values[figure]);
}

bool share_a_set(size_t a, size_t b, const std::vector<std::vector<size_t>>& sets) {
  return std::any_of(sets.begin(), sets.end(), [&](const std::vector<size_t>& set) {
    return std::count(set.begin(), set.end(), a) > 0 && std::count(set.begin(), set.end(), b) > 0;
  });
}

// -------------------------------------------------------------------------------------- options

struct OptionCut {
  std::string cut, value, recipe_value;
};

// "init scaled instead of authors" for the option "init".
std::optional<OptionCut> find_cut(const std::string& option, const TrainedRow& row) {
  const std::string middle = " instead of ";
  for (const auto& cut : row.cuts) {
    const auto at = cut.find(middle);
    if (cut.rfind(option + " ", 0) != 0 || at == std::string::npos) continue;
    const auto begin = option.size() + 1;
    return OptionCut{cut, cut.substr(begin, at - begin), cut.substr(at + middle.size())};
  }
  return std::nullopt;
}

}  // namespace

size_t TrainedRow::finished() const {
  size_t most = 0;
  for (const auto& of_figure : values) most = std::max(most, of_figure.size());
  return most;
}

std::vector<TrainedRow> trained_rows(const Results& results) {
  std::vector<TrainedRow> rows;
  for (const auto& row : results.rows) {
    auto found = std::find_if(rows.begin(), rows.end(),
                              [&](const TrainedRow& other) { return is_another_seed(other, row); });
    if (found == rows.end())
      found = rows.insert(
          rows.end(), {&row, row.cuts, {}, std::vector<std::vector<double>>(row.figures.size())});
    found->seeds.insert(row.seed);
    for (size_t f = 0; f < row.figures.size(); ++f)
      if (is_final(row, row.figures[f])) found->values[f].push_back(*row.figures[f].ours);
  }
  return rows;
}

std::vector<std::vector<TrainedRow>> group_by_cuts(const std::vector<TrainedRow>& rows) {
  std::vector<std::vector<TrainedRow>> groups;
  for (const auto& row : rows) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.front().cuts == row.cuts;
    });
    found == groups.end() ? groups.push_back({row}) : found->push_back(row);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return samples_seen(a.front()) < samples_seen(b.front());
  });
  return groups;
}

std::vector<TrainedRow> best_trained(const std::vector<TrainedRow>& rows) {
  std::map<size_t, TrainedRow> best;  // by the number of the table row
  for (const auto& row : rows) {
    const auto [found, is_new] = best.emplace(row.row->number, row);
    if (!is_new && is_better_trained(row, found->second)) found->second = row;
  }
  std::vector<TrainedRow> chosen;
  for (const auto& [number, row] : best) chosen.push_back(row);
  return chosen;
}

std::vector<OptionPair> pairs_differing_in(const std::string& option, const Results& results) {
  const auto rows = trained_rows(results);
  std::vector<OptionPair> pairs;
  for (auto changed : rows) {
    const auto cut = find_cut(option, changed);
    if (!cut) continue;
    changed.cuts.erase(std::find(changed.cuts.begin(), changed.cuts.end(), cut->cut));
    for (const auto& recipe : rows)
      if (recipe.row->number == changed.row->number && recipe.cuts == changed.cuts)
        pairs.push_back({recipe, changed, cut->recipe_value, cut->value});
  }
  return pairs;
}

std::vector<std::string> shared_cuts(const std::vector<TrainedRow>& rows) {
  std::vector<std::string> shared;
  for (const auto& cut : rows.front().cuts)
    if (std::all_of(rows.begin(), rows.end(),
                    [&](const TrainedRow& row) { return has_cut(row, cut); }))
      shared.push_back(cut);
  return shared;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<std::vector<size_t>> open_sets(const std::vector<TrainedRow>& rows, size_t figure) {
  const auto fits = [&](const std::vector<size_t>& set, size_t row) {
    return std::all_of(set.begin(), set.end(),
                       [&](size_t other) { return is_open(rows[row], rows[other], figure); });
  };
  std::vector<std::vector<size_t>> sets;
  for (size_t a = 0; a < rows.size(); ++a)
    for (size_t b = a + 1; b < rows.size(); ++b) {
      if (!is_open(rows[a], rows[b], figure) || share_a_set(a, b, sets)) continue;
      std::vector<size_t> set = {a, b};
      for (size_t row = 0; row < rows.size(); ++row)
        if (fits(set, row)) set.push_back(row);  // not a or b: a row is never open to itself
      sets.push_back(std::move(set));
    }
  return sets;
}

}  // namespace translution::cli
