#pragma once

#include <string>
#include <vector>

#include "translution/core/export.h"

namespace translution {

struct ChartPoint {
  double x, y;
};

/// How a series is drawn. `thin` is for values of every step: a jagged series is drawn as its
/// moving average over a faint line of its values. The others have dots if there are few points.
enum class Stroke { thin, solid, dashed, dotted };

struct ChartSeries {
  std::string name;  ///< plain text
  int colour = 0;    ///< see colour_class
  Stroke stroke = Stroke::solid;
  std::vector<ChartPoint> points;  ///< in ascending order of x; a y that is not finite is a gap
};

struct LineChart {
  std::string title;     ///< plain text above the chart; may be empty
  std::string x_name;    ///< plain text, as "step"
  bool whole_x = false;  ///< x values are integers
  bool log_y = false;
  int width = 500, height = 260;  ///< in pixels
  std::vector<ChartSeries> series;
};

/// The chart as an SVG picture; names of series are beside their last points if all fit.
TRANSLUTION_API std::string svg_line_chart(const LineChart& chart);
/// Charts one below the other as a standalone SVG file with its own style sheet.
TRANSLUTION_API std::string svg_file(const std::vector<LineChart>& charts);

struct LegendEntry {
  std::string name;
  int colour = -1;  ///< -1: the colour of text
  Stroke stroke = Stroke::solid;
};
TRANSLUTION_API std::string chart_legend(const std::vector<LegendEntry>& entries);

/// Selects at most `most` (at least 5) of the points: the first, the last, and from each of several
/// intervals the lowest, the highest and one that is not finite.
TRANSLUTION_API std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t most);

}  // namespace translution
