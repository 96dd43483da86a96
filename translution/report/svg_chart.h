#pragma once

#include <string>
#include <vector>

#include "translution/core/export.h"

namespace translution {

struct ChartPoint {
  double x, y;
};

/// How a series is drawn. `thin` is for what is measured at every step: a jagged line becomes its
/// mean, over a faint picture of itself. The others have dots where there are few points.
enum class Stroke { thin, solid, dashed, dotted };

struct ChartSeries {
  std::string name;  ///< plain text
  int colour = 0;    ///< see colour_class
  Stroke stroke = Stroke::solid;
  std::vector<ChartPoint> points;  ///< in the order of x; a y that is not finite leaves a gap
};

struct LineChart {
  std::string title;     ///< plain text above it; none where it is empty
  std::string x_name;    ///< plain text, as "step"
  bool whole_x = false;  ///< x counts something
  bool log_y = false;
  int width = 500, height = 260;  ///< in pixels at full size
  std::vector<ChartSeries> series;
};

/// The chart as an SVG picture; series are named beside their last point where there is room.
TRANSLUTION_API std::string svg_line_chart(const LineChart& chart);
/// Charts below each other, as a file of its own that brings its colours along.
TRANSLUTION_API std::string svg_file(const std::vector<LineChart>& charts);

struct LegendEntry {
  std::string name;
  int colour = -1;  ///< -1: ink
  Stroke stroke = Stroke::solid;
};
TRANSLUTION_API std::string chart_legend(const std::vector<LegendEntry>& entries);

/// At most `most` of the points (at least 5): first, last, and of each stretch between the lowest,
/// the highest and one that is not finite.
TRANSLUTION_API std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t most);

}  // namespace translution
