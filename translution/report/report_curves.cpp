#include <algorithm>
#include <set>

#include "translution/report/axis.h"
#include "translution/report/html.h"
#include "translution/report/report_parts.h"
#include "translution/report/svg_chart.h"

namespace translution {
namespace {

constexpr double kLogFrom = 20;  // ratio of highest to lowest loss that needs a logarithmic axis

// Distinct names in order of first appearance.
template <typename Get>
std::vector<std::string> names_in(const ReportData& data, Get get) {
  std::vector<std::string> names;
  for (const auto& run : data.runs)
    for (const auto& series : run.series)
      if (std::find(names.begin(), names.end(), get(series)) == names.end())
        names.push_back(get(series));
  return names;
}

// A split has the same stroke in all charts: training is thin, evaluation sets take the others.
Stroke stroke_of(const std::string& split, const std::vector<std::string>& splits) {
  constexpr Stroke kStrokes[] = {Stroke::solid, Stroke::dashed, Stroke::dotted};
  if (split == "train") return Stroke::thin;
  size_t index = 0;
  for (const auto& other : splits) {
    if (other == split) break;
    index += other != "train";
  }
  return kStrokes[index % std::size(kStrokes)];
}

// Losses fall by powers of ten; other metrics are easier to read on a linear axis.
bool needs_log(const std::string& metric, const LineChart& chart) {
  if (metric.find("loss") == std::string::npos && metric.find("perplexity") == std::string::npos)
    return false;
  double low = 1e300, high = 0;
  for (const auto& series : chart.series)
    for (const auto& point : series.points) {
      if (!is_drawable(point.y, false)) continue;
      if (!is_drawable(point.y, true)) return false;
      low = std::min(low, point.y), high = std::max(high, point.y);
    }
  return high > kLogFrom * low;
}

std::vector<ChartPoint> points_of(const ReportSeries& series, bool over_epochs) {
  std::vector<ChartPoint> points;
  for (const auto& point : series.points)
    points.push_back({over_epochs ? point.epoch : static_cast<double>(point.step), point.value});
  return points;
}

LineChart make_chart(const ReportData& data, const std::string& metric,
                     const std::vector<std::string>& all_splits) {
  LineChart chart;
  chart.x_name = data.over_epochs ? "epoch" : "step";
  chart.whole_x = !data.over_epochs;
  std::set<std::string> splits;
  for (const auto& run : data.runs)
    for (const auto& series : run.series)
      if (series.metric == metric) splits.insert(series.split);
  for (size_t i = 0; i < data.runs.size(); ++i)
    for (const auto& series : data.runs[i].series) {
      if (series.metric != metric || series.points.empty()) continue;
      const std::string& run = data.runs[i].name;
      const bool one_run = data.runs.size() == 1;
      chart.series.push_back({splits.size() == 1 ? run
                              : one_run          ? series.split
                                                 : run + " · " + series.split,
                              static_cast<int>(i), stroke_of(series.split, all_splits),
                              points_of(series, data.over_epochs)});
    }
  chart.log_y = needs_log(metric, chart);
  if (splits.size() > 1) chart.width = 1046, chart.height = 340;
  return chart;
}

std::string legend(const ReportData& data, const std::vector<std::string>& splits) {
  std::vector<LegendEntry> entries;
  for (size_t i = 0; i < data.runs.size(); ++i)
    if (!data.runs[i].series.empty())
      entries.push_back({data.runs[i].name, static_cast<int>(i), Stroke::solid});
  if (splits.size() > 1)
    for (const auto& split : splits) entries.push_back({split, -1, stroke_of(split, splits)});
  return entries.size() > 1 ? chart_legend(entries) : "";
}

}  // namespace

std::string report_curves(const ReportData& data) {
  const auto splits = names_in(data, [](const ReportSeries& series) { return series.split; });
  std::string html;
  for (const auto& metric :
       names_in(data, [](const ReportSeries& series) { return series.metric; })) {
    const LineChart chart = make_chart(data, metric, splits);
    if (chart.series.empty()) continue;
    const bool wide = chart.width > 600;
    html += html_figure({wide ? "card wide" : "card", metric + (chart.log_y ? " (log scale)" : ""),
                         svg_line_chart(chart), ""});
  }
  if (html.empty()) return "";
  return legend(data, splits) + "<div class=\"charts\">\n" + html + "</div>\n";
}

}  // namespace translution
