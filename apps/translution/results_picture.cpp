#include "results_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apps/translution/reproduce/curves.h"
#include "translution/report/html.h"
#include "translution/report/svg_chart.h"

namespace translution::cli {
namespace {

constexpr size_t kPoints = 60;  // per line, about

// The loss on "train" or another set. Each point is the mean of consecutive values.
std::vector<ChartPoint> loss_of(const std::string& path, const std::string& set) {
  std::vector<ChartPoint> all;
  for (const auto& moment : read_curves(path))
    if (moment.split == set && moment.values.front().first == "loss")
      all.push_back({moment.epoch, moment.values.front().second});
  const size_t length = all.size() / kPoints + 1;
  std::vector<ChartPoint> points;
  for (size_t begin = 0; begin < all.size(); begin += length) {
    const size_t end = std::min(all.size(), begin + length);
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += all[i].y;
    points.push_back({all[end - 1].x, sum / static_cast<double>(end - begin)});
  }
  return points;
}

// Dashed for static digits, dotted for rows whose colour repeats that of an earlier row.
Stroke stroke_of(const RowResult& row, const RunResult& run) {
  for (const auto& figure : row.figures)
    if (figure.run == run.name && figure.name.rfind("static_", 0) == 0) return Stroke::dashed;
  return row.number > kColours ? Stroke::dotted : Stroke::solid;
}

std::string name_of_row(const RowResult& row, bool one_method) {
  if (row.variant.empty()) return fmt::format("{} {}", row.number, row.method);
  if (one_method) return fmt::format("{} {}", row.number, row.variant);
  return fmt::format("{} {}, {}", row.number, row.method, row.variant);
}

// For a perplexity, the loss of evaluation is drawn beside that of training.
bool shows_evaluation(const RowResult& row) { return row.figures.front().metric == "perplexity"; }

std::string title_of(const RowResult& row, const Results& results) {
  const auto cuts = special_cuts(row, results);
  const std::string dashed = shows_evaluation(row) ? "dashed: text that was not learned"
                             : row.runs.size() > 1 ? "dashed: digits that stand still"
                                                   : "";
  return cuts.empty() || dashed.empty() ? cuts + dashed : cuts + "; " + dashed;
}

// The chart for rows trained in the same way. Adds it for the first such row.
LineChart& chart_for(const RowResult& row, const Results& results, std::vector<LineChart>& charts) {
  const auto title = title_of(row, results);
  const auto found = std::find_if(charts.begin(), charts.end(),
                                  [&](const LineChart& chart) { return chart.title == title; });
  if (found != charts.end()) return *found;
  LineChart chart;
  chart.title = title;
  chart.x_name = "passes over the data";
  chart.log_y = true;
  chart.width = 960, chart.height = 340;
  charts.push_back(chart);
  return charts.back();
}

}  // namespace

std::string results_picture(const Results& results, const std::string& curves) {
  std::set<std::string> methods, drawn;
  for (const auto& row : results.rows) methods.insert(row.method);
  std::vector<LineChart> charts;
  for (const auto& row : results.rows)
    for (const auto& run : row.runs) {
      if (run.step == 0 || !drawn.insert(run.name).second) continue;
      auto& series = chart_for(row, results, charts).series;
      const auto name = name_of_row(row, methods.size() == 1);
      const auto path = curves + "/" + run.name + ".csv";
      const int colour = static_cast<int>(row.number) - 1;
      series.push_back({name, colour, stroke_of(row, run), loss_of(path, "train")});
      if (shows_evaluation(row))
        series.push_back({name, colour, Stroke::dashed, loss_of(path, row.figures.front().set)});
    }
  return charts.empty() ? "" : svg_file(charts);
}

}  // namespace translution::cli
