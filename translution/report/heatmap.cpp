#include "translution/report/heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "translution/core/error.h"
#include "translution/report/axis.h"
#include "translution/report/html.h"

namespace translution {

using namespace detail;

namespace {

constexpr double kLetter = 6.6;  // mean width of a letter, in pixels
constexpr size_t kMostLetters = 18;
constexpr int64_t kMostSide = 1024;  // cells in a row or column
constexpr double kScaleHeight = 32;  // of the colour scale below the map

struct Rgb {
  double red, green, blue;
};

// From violet over green to yellow in even steps of lightness: readable for colour-blind readers
// and in greyscale.
constexpr Rgb kRamp[] = {{68, 1, 84},    {65, 68, 135},  {42, 120, 142},
                         {34, 168, 132}, {122, 209, 81}, {253, 231, 37}};
constexpr int kRampEnd = std::size(kRamp) - 1;

std::string ramp_colour(double share) {
  const double scaled = std::clamp(share, 0.0, 1.0) * kRampEnd;
  const int below = std::min(static_cast<int>(scaled), kRampEnd - 1);
  const Rgb &a = kRamp[below], &b = kRamp[below + 1];
  const auto mix = [t = scaled - below](double x, double y) {
    return std::lround(x + t * (y - x));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(a.red, b.red), mix(a.green, b.green),
                     mix(a.blue, b.blue));
}

struct Range {
  double low, high;
  // From 0 to 1; 0.5 if all values are equal.
  double share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

Range range_of(const std::vector<double>& values) {
  Range range{0, 0};
  bool first = true;
  for (const double value : values) {
    if (!is_drawable(value, false)) continue;
    range.low = first ? value : std::min(range.low, value);
    range.high = first ? value : std::max(range.high, value);
    first = false;
  }
  return range;
}

// ---------------------------------------------------------------------------------- heatmap

struct Frame {
  double left, top, width, height;
  bool slanted;  // column names
};

double max_name_width(const std::vector<std::string>& names) {
  size_t length = 0;
  for (const auto& name : names) length = std::max(length, std::min(name.size(), kMostLetters));
  return length * kLetter;
}

// The smallest distance between two named columns.
size_t name_spacing(const std::vector<std::string>& names) {
  size_t least = names.size(), last = names.size();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    if (last < i) least = std::min(least, i - last);
    last = i;
  }
  return least;
}

Frame make_frame(const Heatmap& map) {
  Frame frame{};
  const double row_width = max_name_width(map.row_names);
  const double col_width = max_name_width(map.col_names);
  frame.slanted = col_width > name_spacing(map.col_names) * map.cell - 2;
  frame.left = (map.row_title.empty() ? 0 : 22) + (row_width > 0 ? row_width + 8 : 0) + 1;
  frame.top = (map.col_title.empty() ? 0 : 20) +
              (col_width == 0 ? 0 : (frame.slanted ? 0.7 * col_width + 14 : 18)) + 1;
  frame.width = frame.left + map.cols * map.cell + 1 + (frame.slanted ? 0.7 * col_width : 0);
  frame.height = frame.top + map.rows * map.cell + 1;
  if (map.colours == Heatmap::Colours::range) frame.height += kScaleHeight;
  return frame;
}

std::string draw_titles(const Heatmap& map, const Frame& frame) {
  std::string svg;
  const double middle_y = frame.top + map.rows * map.cell / 2.0;
  if (!map.col_title.empty())
    svg += fmt::format("<text class=\"name middle\" x=\"{:.1f}\" y=\"12\">{}</text>\n",
                       frame.left + map.cols * map.cell / 2.0, html_escape(map.col_title));
  if (!map.row_title.empty())
    svg += fmt::format(
        "<text class=\"name middle\" transform=\"translate(12 {:.1f}) rotate(-90)\">{}</text>\n",
        middle_y, html_escape(map.row_title));
  return svg;
}

std::string draw_names(const Heatmap& map, const Frame& frame) {
  std::string svg;
  for (size_t i = 0; i < map.row_names.size(); ++i)
    svg += fmt::format("<text class=\"tick end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                       frame.left - 7, frame.top + (i + 0.5) * map.cell + 4,
                       html_escape(shortened(map.row_names[i], kMostLetters)));
  for (size_t i = 0; i < map.col_names.size(); ++i)
    svg +=
        fmt::format("<text class=\"tick {}\" transform=\"translate({:.1f} {:.1f}){}\">{}</text>\n",
                    frame.slanted ? "start" : "middle", frame.left + (i + 0.5) * map.cell,
                    frame.top - 7, frame.slanted ? " rotate(-45)" : "",
                    html_escape(shortened(map.col_names[i], kMostLetters)));
  return svg;
}

std::string fill_of(const Heatmap& map, double value, const Range& range) {
  if (!is_drawable(value, false)) return "class=\"blank\"";
  if (map.colours == Heatmap::Colours::range)
    return fmt::format("fill=\"{}\"", ramp_colour(range.share(value)));
  return fmt::format("class=\"heat\" fill-opacity=\"{:.3f}\"", std::clamp(value, 0.0, 1.0));
}

std::string draw_cell(const Heatmap& map, const Frame& frame, int64_t index, const Range& range) {
  const double x = frame.left + index % map.cols * map.cell;
  const double y = frame.top + index / map.cols * map.cell;
  std::string svg =
      fmt::format("<path {} d=\"M{:.1f} {:.1f}h{}v{}h-{}z\">",  //
                  fill_of(map, map.values[index], range), x, y, map.cell, map.cell, map.cell);
  if (!map.tooltips.empty()) svg += "<title>" + html_escape(map.tooltips[index]) + "</title>";
  svg += "</path>\n";
  if (!map.texts.empty())
    svg += fmt::format("<text class=\"cell middle{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                       map.values[index] > 0.7 ? " over" : "", x + map.cell / 2.0,
                       y + map.cell / 2.0 + 4, html_escape(map.texts[index]));
  return svg;
}

// The colour scale, labelled with the lowest and the highest value.
std::string draw_scale(const Heatmap& map, const Frame& frame, const Range& range) {
  constexpr int kSteps = 24;
  std::string svg;
  const double y = frame.top + map.rows * map.cell + 10, width = map.cols * map.cell;
  for (int i = 0; i < kSteps; ++i)
    svg += fmt::format("<path fill=\"{}\" d=\"M{:.1f} {:.1f}h{:.1f}v5h-{:.1f}z\"/>",
                       ramp_colour(i / (kSteps - 1.0)), frame.left + i * width / kSteps, y,
                       width / kSteps + 0.2, width / kSteps + 0.2);
  return svg + fmt::format(
                   "<text class=\"tick start\" x=\"{0:.1f}\" y=\"{2:.1f}\">{3:.3g}</text>"
                   "<text class=\"tick end\" x=\"{1:.1f}\" y=\"{2:.1f}\">{4:.3g}</text>\n",
                   frame.left, frame.left + width, y + 18, range.low, range.high);
}

}  // namespace

void check_grid(const char* what, int64_t rows, int64_t cols, size_t count) {
  require(rows >= 1 && cols >= 1 && rows <= kMostSide && cols <= kMostSide, what,
          ": expected sides from 1 to ", kMostSide, ", got ", rows, "x", cols);
  require(count == static_cast<size_t>(rows * cols), what, ": expected ", rows * cols,
          " values for ", rows, "x", cols, ", got ", count);
}

std::string svg_heatmap(const Heatmap& map) {
  check_grid("heatmap", map.rows, map.cols, map.values.size());
  const Frame frame = make_frame(map);
  const Range range = range_of(map.values);
  std::string svg = fmt::format(
      "<svg class=\"heatmap\" role=\"img\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "style=\"max-width:{0:.0f}px\">\n",
      frame.width, frame.height);
  svg += draw_titles(map, frame) + draw_names(map, frame);
  for (int64_t i = 0; i < map.rows * map.cols; ++i) svg += draw_cell(map, frame, i, range);
  svg += fmt::format("<path class=\"frame\" d=\"M{:.1f} {:.1f}h{}v{}h-{}z\"/>\n", frame.left,
                     frame.top, map.cols * map.cell, map.rows * map.cell, map.cols * map.cell);
  if (map.marked >= 0)
    svg += fmt::format("<path class=\"marked\" d=\"M{:.1f} {:.1f}h{}v{}h-{}z\"/>\n",
                       frame.left + map.marked % map.cols * map.cell,
                       frame.top + map.marked / map.cols * map.cell, map.cell, map.cell, map.cell);
  if (map.colours == Heatmap::Colours::range) svg += draw_scale(map, frame, range);
  return svg + "</svg>\n";
}

}  // namespace translution
