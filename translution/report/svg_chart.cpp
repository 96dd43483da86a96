#include "translution/report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "translution/report/axis.h"
#include "translution/report/html.h"

namespace translution {

extern const char* const embedded_chart;  // chart.css

namespace {

constexpr size_t kMostPoints = 400;   // of a line; a screen shows no more
constexpr size_t kMostTargets = 40;   // points of a line with a tooltip
constexpr size_t kMostMarks = 10;     // for values that are not finite
constexpr double kLetter = 6.3;       // mean width of a letter, in pixels
constexpr double kLineHeight = 15.0;  // of the names of series

struct Plot {
  double left, top, right, bottom;
  Axis x, y;
  bool log_y;

  double at_x(double value) const { return left + (right - left) * x.fraction(value); }
  double at_y(double value) const { return bottom + (top - bottom) * y.fraction(value); }
  bool shows(const ChartPoint& p) const {
    return is_drawable(p.x, false) && is_drawable(p.y, log_y);
  }
};

const char* stroke_class(Stroke stroke) {
  switch (stroke) {
    case Stroke::thin:
      return "thin";
    case Stroke::solid:
      return "solid";
    case Stroke::dashed:
      return "dashed";
    case Stroke::dotted:
      return "dotted";
  }
  return "";
}

// ------------------------------------------------------------------------------------- axes

Axis axis_over(const LineChart& chart, double ChartPoint::*coordinate, const AxisOptions& options) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const auto& series : chart.series)
    for (const auto& point : series.points) {
      if (!is_drawable(point.x, false) || !is_drawable(point.y, chart.log_y)) continue;
      low = std::min(low, point.*coordinate), high = std::max(high, point.*coordinate);
    }
  if (low > high) low = high = 1;  // nothing to draw
  // Extend an axis to zero if it nearly reaches it.
  if (!options.log && low > 0 && low < 0.3 * high) low = 0;
  return Axis(low, high, options);
}

double max_text_width(const std::vector<std::string>& texts) {
  size_t length = 0;
  for (const auto& text : texts) length = std::max(length, text.size());
  return length * kLetter;
}

std::string draw_axes(const Plot& plot, const std::string& x_name) {
  std::string svg;
  const auto y_texts = plot.y.tick_texts(), x_texts = plot.x.tick_texts();
  for (size_t i = 0; i < y_texts.size(); ++i) {
    const double y = plot.at_y(plot.y.ticks()[i]);
    svg +=
        fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>", plot.left, y, plot.right);
    svg += fmt::format("<text class=\"tick end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                       plot.left - 8, y + 4, y_texts[i]);
  }
  svg += fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", plot.left, plot.bottom,
                     plot.right);
  for (size_t i = 0; i < x_texts.size(); ++i) {
    const double x = plot.at_x(plot.x.ticks()[i]);
    svg += fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}v5\"/>", x, plot.bottom);
    svg += fmt::format("<text class=\"tick middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x,
                       plot.bottom + 18, x_texts[i]);
  }
  return svg + fmt::format("<text class=\"name middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                           (plot.left + plot.right) / 2, plot.bottom + 36, html_escape(x_name));
}

// ------------------------------------------------------------------------------------ lines

// True if the line changes direction at more than a quarter of its points.
bool is_jagged(const std::vector<ChartPoint>& points) {
  size_t turns = 0;
  for (size_t i = 2; i < points.size(); ++i) {
    const double before = points[i - 1].y - points[i - 2].y, after = points[i].y - points[i - 1].y;
    turns += (before < 0 && after > 0) || (before > 0 && after < 0);
  }
  return 4 * turns > points.size();
}

// A moving average over a fiftieth of the points to either side.
std::vector<ChartPoint> smoothed(const std::vector<ChartPoint>& points, const Plot& plot) {
  const size_t reach = points.size() / 50;
  std::vector<double> sums(points.size() + 1);
  std::vector<size_t> counts(points.size() + 1);
  for (size_t i = 0; i < points.size(); ++i) {
    const bool shown = plot.shows(points[i]);
    sums[i + 1] = sums[i] + (shown ? points[i].y : 0);
    counts[i + 1] = counts[i] + shown;
  }
  auto means = points;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!plot.shows(points[i])) continue;
    const size_t begin = i - std::min(i, reach), end = std::min(points.size(), i + reach + 1);
    means[i].y = (sums[end] - sums[begin]) / (counts[end] - counts[begin]);
  }
  return means;
}

bool is_averaged(const ChartSeries& series) {
  return series.stroke == Stroke::thin && is_jagged(series.points);
}

std::vector<ChartPoint> main_line(const ChartSeries& series, const Plot& plot) {
  return is_averaged(series) ? smoothed(series.points, plot) : series.points;
}

std::string path_of(const std::vector<ChartPoint>& points, const Plot& plot) {
  std::string path;
  bool drawing = false;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool shown = plot.shows(points[i]);
    if (shown) {
      path += fmt::format("{}{:.1f} {:.1f}", drawing ? "L" : "M", plot.at_x(points[i].x),
                          plot.at_y(points[i].y));
      // An isolated point is a line of length 0, drawn as its round caps.
      const bool isolated = !drawing && (i + 1 == points.size() || !plot.shows(points[i + 1]));
      if (isolated) path += "h0";
    }
    drawing = shown;
  }
  return path;
}

std::string draw_line(const char* kind, const std::vector<ChartPoint>& points, const Plot& plot) {
  return fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", kind,
                     path_of(thinned(points, kMostPoints), plot));
}

std::string tooltip(const ChartSeries& series, const ChartPoint& point, const std::string& x_name) {
  return fmt::format("<title>{}\n{} {}: {}</title>", html_escape(series.name), html_escape(x_name),
                     value_text(point.x), value_text(point.y));
}

// Dots with tooltips, visible only if the line has few points.
std::string draw_dots(const ChartSeries& series, const std::vector<ChartPoint>& points,
                      const Plot& plot, const std::string& x_name) {
  const bool visible = series.stroke != Stroke::thin && points.size() <= kMostTargets;
  const auto targets = thinned(points, kMostTargets);
  std::string svg;
  for (const auto& point : targets)
    if (plot.shows(point))
      svg += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\">{}</circle>\n",
                         visible ? "dot" : "target", plot.at_x(point.x), plot.at_y(point.y),
                         visible ? 2.6 : 6.0, tooltip(series, point, x_name));
  return svg;
}

// A cross at the top where values stop being finite.
std::string draw_marks(const ChartSeries& series, const Plot& plot, const std::string& x_name) {
  std::string svg;
  size_t marks = 0;
  bool was_finite = true;
  for (const auto& point : series.points) {
    const bool finite = std::isfinite(point.y);
    if (!finite && was_finite && is_drawable(point.x, false) && marks++ < kMostMarks)
      svg += fmt::format("<path class=\"lost\" d=\"M{:.1f} {:.1f}l8 8m0 -8l-8 8\">{}</path>\n",
                         plot.at_x(point.x) - 4, plot.top - 4, tooltip(series, point, x_name));
    was_finite = finite;
  }
  return svg;
}

std::string draw_series(const ChartSeries& series, const Plot& plot, const std::string& x_name) {
  const bool jagged = is_averaged(series);
  const auto line = main_line(series, plot);
  std::string svg = fmt::format("<g class=\"series {} {}\">\n", colour_class(series.colour),
                                stroke_class(series.stroke));
  if (jagged) svg += draw_line("raw", series.points, plot);
  svg += draw_line("main", line, plot) + draw_dots(series, line, plot, x_name);
  return svg + draw_marks(series, plot, x_name) + "</g>\n";
}

// ------------------------------------------------------------------- names beside the lines

struct Label {
  const ChartSeries* series;
  double x, y;  // end of the line
  double text_y = 0;
};

std::vector<Label> make_labels(const LineChart& chart, const Plot& plot) {
  std::vector<Label> labels;
  for (const auto& series : chart.series) {
    const auto line = main_line(series, plot);
    for (auto point = line.rbegin(); point != line.rend(); ++point) {
      if (!plot.shows(*point)) continue;
      labels.push_back({&series, plot.at_x(point->x), plot.at_y(point->y)});
      break;
    }
  }
  std::stable_sort(labels.begin(), labels.end(),
                   [](const Label& a, const Label& b) { return a.y < b.y; });
  return labels;
}

// Pushes names down until none overlap, then back up from the bottom.
void spread(std::vector<Label>& labels, const Plot& plot) {
  double above = plot.top - kLineHeight;
  for (auto& label : labels) above = label.text_y = std::max(label.y, above + kLineHeight);
  double below = plot.bottom + kLineHeight;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label)
    below = label->text_y = std::min(label->text_y, below - kLineHeight);
}

size_t most_letters(const LineChart& chart) { return std::min(40, chart.width / 24); }

std::string draw_labels(const LineChart& chart, const Plot& plot) {
  auto labels = make_labels(chart, plot);
  spread(labels, plot);
  std::string svg;
  for (const auto& label : labels)
    svg += fmt::format(
        "<g class=\"label {} {}\"><path class=\"leader\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>"
        "<path class=\"line\" d=\"M{:.1f} {:.1f}h16\"/><text x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}</text></g>\n",
        colour_class(label.series->colour), stroke_class(label.series->stroke), label.x, label.y,
        plot.right + 14, label.text_y, plot.right + 14, label.text_y, plot.right + 35,
        label.text_y + 4, html_escape(shortened(label.series->name, most_letters(chart))));
  return svg;
}

// A single line needs no name; names are left out if they do not all fit.
bool has_labels(const LineChart& chart) {
  return chart.series.size() > 1 && chart.series.size() * kLineHeight <= chart.height - 50;
}

double label_width(const LineChart& chart) {
  if (!has_labels(chart)) return 16;
  size_t letters = 0;
  for (const auto& series : chart.series)
    letters = std::max(letters, std::min(series.name.size(), most_letters(chart)));
  return 42 + letters * kLetter;
}

Plot make_plot(const LineChart& chart) {
  AxisOptions x_options, y_options;
  x_options.integer = chart.whole_x;
  x_options.round = false;
  x_options.most_ticks = std::max(3, chart.width / 90);
  y_options.log = chart.log_y;
  y_options.most_ticks = std::max(3, chart.height / 50);
  const Axis x = axis_over(chart, &ChartPoint::x, x_options);
  const Axis y = axis_over(chart, &ChartPoint::y, y_options);
  return {max_text_width(y.tick_texts()) + 14,
          chart.title.empty() ? 10.0 : 14 + kLineHeight,
          chart.width - label_width(chart),
          chart.height - 44.0,
          x,
          y,
          chart.log_y};
}

std::string draw_chart(const LineChart& chart) {
  const Plot plot = make_plot(chart);
  std::string svg = draw_axes(plot, chart.x_name);
  if (!chart.title.empty())
    svg += fmt::format("<text class=\"name\" x=\"{:.1f}\" y=\"14\">{}</text>\n", plot.left,
                       html_escape(chart.title));
  for (const bool thin : {true, false})  // thin lines first, below the others
    for (const auto& series : chart.series)
      if ((series.stroke == Stroke::thin) == thin) svg += draw_series(series, plot, chart.x_name);
  if (has_labels(chart)) svg += draw_labels(chart, plot);
  return svg;
}

}  // namespace

std::string svg_line_chart(const LineChart& chart) {
  return fmt::format(
      "<svg class=\"chart\" role=\"img\" viewBox=\"0 0 {0} {1}\" style=\"max-width:{0}px\">\n{2}"
      "</svg>\n",
      chart.width, chart.height, draw_chart(chart));
}

std::string svg_file(const std::vector<LineChart>& charts) {
  int width = 0, height = 0;
  std::string drawn;
  for (const auto& chart : charts) {
    drawn += fmt::format("<g transform=\"translate(0,{})\">\n{}</g>\n", height, draw_chart(chart));
    width = std::max(width, chart.width);
    height += chart.height;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" font-family=\"sans-serif\" "
      "viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n<style>\n{2}</style>\n{3}</svg>\n",
      width, height, embedded_chart, drawn);
}

std::string chart_legend(const std::vector<LegendEntry>& entries) {
  std::string html = "<ul class=\"legend\">\n";
  for (const auto& entry : entries) {
    const bool dotted = entry.colour < 0 && entry.stroke != Stroke::thin;
    html += fmt::format(
        "<li><svg class=\"{} {}\" viewBox=\"0 0 30 10\" width=\"30\" height=\"10\">"
        "<path class=\"line\" d=\"M2 5h26\"/>{}</svg>{}</li>\n",
        entry.colour < 0 ? "ink" : colour_class(entry.colour), stroke_class(entry.stroke),
        dotted ? "<circle class=\"dot\" cx=\"15\" cy=\"5\" r=\"2.6\"/>" : "",
        html_escape(entry.name));
  }
  return html + "</ul>\n";
}

std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t most) {
  if (points.size() <= most) return points;
  const size_t buckets = (most - 2) / 3, inner = points.size() - 2;
  std::vector<ChartPoint> selected = {points.front()};
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    size_t low = 0, high = 0, not_finite = 0;  // 0: none; the first point is in no bucket
    for (size_t i = 1 + inner * bucket / buckets; i < 1 + inner * (bucket + 1) / buckets; ++i) {
      if (!std::isfinite(points[i].y)) {
        not_finite = i;
        continue;
      }
      if (low == 0 || points[i].y < points[low].y) low = i;
      if (high == 0 || points[i].y > points[high].y) high = i;
    }
    size_t chosen[] = {low, high, not_finite};
    std::sort(std::begin(chosen), std::end(chosen));
    for (size_t i = 0; i < 3; ++i)
      if (chosen[i] > 0 && (i == 0 || chosen[i] != chosen[i - 1]))
        selected.push_back(points[chosen[i]]);
  }
  selected.push_back(points.back());
  return selected;
}

}  // namespace translution
