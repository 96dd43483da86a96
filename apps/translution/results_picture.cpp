#include "results_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "translution/report/svg_chart.h"
#include "translution/reproduce/curves.h"

namespace translution::cli {
namespace {

constexpr size_t kPoints = 60;  // of a line: enough to see its course

// The loss of training, each point the mean of a stretch.
std::vector<ChartPoint> loss_of(const std::string& path) {
  std::vector<ChartPoint> all;
  for (const auto& moment : read_curves(path))
    if (moment.split == "train" && moment.values.front().first == "loss")
      all.push_back({moment.epoch, moment.values.front().second});
  const size_t stretch = all.size() / kPoints + 1;
  std::vector<ChartPoint> points;
  for (size_t begin = 0; begin < all.size(); begin += stretch) {
    const size_t end = std::min(all.size(), begin + stretch);
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += all[i].y;
    points.push_back({all[end - 1].x, sum / static_cast<double>(end - begin)});
  }
  return points;
}

// "static" for a run behind "static_dynamic"; nothing where rows have a single training.
std::string placement_of(const RowResult& row, const RunResult& run) {
  for (const auto& figure : row.figures)
    if (figure.run == run.name) {
      const auto line = figure.name.find('_');
      return line == std::string::npos ? "" : figure.name.substr(0, line);
    }
  return "";
}

std::string name_of_row(const RowResult& row, bool one_method) {
  if (row.variant.empty()) return fmt::format("{} {}", row.number, row.method);
  if (one_method) return fmt::format("{} {}", row.number, row.variant);
  return fmt::format("{} {}, {}", row.number, row.method, row.variant);
}

}  // namespace

std::string results_picture(const Results& results, const std::string& curves) {
  LineChart chart;
  chart.x_name = "passes over the data";
  chart.log_y = true;
  chart.width = 760, chart.height = 340;
  std::set<std::string> methods, drawn;
  for (const auto& row : results.rows) methods.insert(row.method);
  for (const auto& row : results.rows)
    for (const auto& run : row.runs) {
      if (run.step == 0 || !drawn.insert(run.name).second) continue;
      const auto placement = placement_of(row, run);
      auto name = name_of_row(row, methods.size() == 1);
      if (!placement.empty()) name += " · " + placement;
      chart.series.push_back({name, static_cast<int>(row.number) - 1,
                              placement == "static" ? Stroke::dashed : Stroke::solid,
                              loss_of(curves + "/" + run.name + ".csv")});
    }
  return chart.series.empty() ? "" : svg_file(chart);
}

}  // namespace translution::cli
