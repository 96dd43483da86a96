#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <regex>

#include "tests/report/markup.h"
#include "translution/core/random.h"
#include "translution/report/heatmap.h"
#include "translution/report/svg_chart.h"

namespace translution {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

LineChart chart_of(std::vector<std::vector<ChartPoint>> lines, Stroke stroke = Stroke::solid) {
  LineChart chart;
  chart.x_name = "step";
  int colour = 0;
  for (auto& points : lines) {
    chart.series.push_back({"run " + std::to_string(colour), colour, stroke, std::move(points)});
    ++colour;
  }
  return chart;
}

// Draws the chart and checks its markup and that all coordinates are numbers.
std::string checked_svg(const LineChart& chart) {
  const std::string svg = svg_line_chart(chart);
  EXPECT_EQ(markup_fault("\n" + svg), "");
  for (const char* name : {"d", "cx", "cy", "x", "y"})
    for (const auto& value : attribute_values(svg, name))
      EXPECT_EQ(value.find_first_not_of("MLHhvlmz0123456789. -"), std::string::npos) << value;
  return svg;
}

TEST(LineChart, DrawsAnyNumberOfSeriesAndPoints) {
  checked_svg(chart_of({}));
  checked_svg(chart_of({{}}));
  checked_svg(chart_of({{{0, 1}}}));
  checked_svg(chart_of({{{0, 1}, {1, 1}, {2, 1}}, {}}));
  checked_svg(chart_of({{{5, 0}, {5, 0}}}));
  for (const Stroke stroke : {Stroke::thin, Stroke::solid, Stroke::dashed, Stroke::dotted})
    checked_svg(chart_of({{{0, 1}, {1, 3}, {2, -2}}, {{0, 2}, {7, 1e6}}}, stroke));
}

TEST(LineChart, FileIsStandaloneWithItsColours) {
  const auto svg = svg_file({chart_of({{{0, 1}, {1, 3}}, {{0, 2}, {1, 1}}})});
  EXPECT_EQ(markup_fault("\n" + svg), "");
  EXPECT_THAT(svg, HasSubstr("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr(".c0 { color: #"));
  EXPECT_THAT(svg, HasSubstr(">run 1</text>"));
}

// Such programs use the first of two declared colours; others use the second, a variable.
TEST(LineChart, IsDrawnByProgramsWithoutCssVariables) {
  const auto svg = svg_file({chart_of({{{0, 1}, {1, 3}}})});
  const auto count = [&](const char* pattern) {
    const std::regex expected(pattern);
    return std::distance(std::sregex_iterator(svg.begin(), svg.end(), expected),
                         std::sregex_iterator());
  };
  EXPECT_GT(count("var\\("), 0);
  EXPECT_EQ(count("([a-z]+): #[0-9a-f]{6}; \\1: var\\("), count("var\\("));
}

TEST(LineChart, LeavesAGapAndAMarkWhereValuesAreNotFinite) {
  for (const double bad : {static_cast<double>(NAN), kInfinity, -kInfinity}) {
    const auto svg = checked_svg(chart_of({{{0, 1}, {1, 2}, {2, bad}, {3, bad}, {4, 2}, {5, 1}}}));
    const auto paths = attribute_values(svg.substr(svg.find("line main")), "d");
    EXPECT_EQ(std::count(paths[0].begin(), paths[0].end(), 'M'), 2);
    EXPECT_THAT(svg, HasSubstr("class=\"lost\""));
  }
  EXPECT_THAT(checked_svg(chart_of({{{0, 1}, {1, 2}}})), Not(HasSubstr("class=\"lost\"")));
  checked_svg(chart_of({{{0, NAN}, {1, kInfinity}}}));
  checked_svg(chart_of({{{NAN, NAN}, {kInfinity, 2}, {1, 1e308}, {2, -1e308}, {3, 1}}}));
}

TEST(LineChart, OnALogarithmicAxisLeavesOutValuesOfZeroOrLess) {
  auto chart = chart_of({{{0, 1}, {1, 0}, {2, -1}, {3, 1e-320}, {4, 100}}});
  chart.log_y = true;
  checked_svg(chart);
}

TEST(LineChart, NamesDoNotOverlap) {
  std::vector<std::vector<ChartPoint>> lines;
  for (int i = 0; i < 12; ++i) lines.push_back({{0, 0}, {1, 1 + 1e-3 * i}});
  const auto svg = checked_svg(chart_of(lines));
  const auto heights = attribute_values(svg.substr(svg.find("class=\"label")), "y");
  ASSERT_EQ(heights.size(), 12u);
  for (size_t i = 1; i < heights.size(); ++i)
    EXPECT_GE(std::stod(heights[i]) - std::stod(heights[i - 1]), 14.9);
  EXPECT_LE(std::stod(heights.back()), 260);
}

TEST(LineChart, OfALongRunStaysSmall) {
  Random random({2});
  std::vector<ChartPoint> points;
  for (int i = 0; i < 200000; ++i) points.push_back({1.0 * i, random.normal()});
  EXPECT_LT(checked_svg(chart_of({points}, Stroke::thin)).size(), 30000u);
}

TEST(Thinned, IncludesEndsExtremesAndValuesThatAreNotFinite) {
  Random random({3});
  for (const size_t count : {6u, 401u, 2000u, 12345u}) {
    std::vector<ChartPoint> points;
    for (size_t i = 0; i < count; ++i) points.push_back({1.0 * i, random.normal()});
    points[count / 3].y = 50, points[count / 2].y = -50, points[count - 2].y = NAN;
    for (const size_t most : {5u, 40u, 400u}) {
      const auto selected = thinned(points, most);
      EXPECT_LE(selected.size(), most);
      EXPECT_EQ(selected.front().x, 0);
      EXPECT_EQ(selected.back().x, count - 1);
      int high = 0, low = 0, not_finite = 0;
      for (size_t i = 0; i < selected.size(); ++i) {
        EXPECT_TRUE(i == 0 || selected[i].x > selected[i - 1].x);
        high += selected[i].y == 50, low += selected[i].y == -50,
            not_finite += std::isnan(selected[i].y);
      }
      EXPECT_EQ(high + low + not_finite, 3) << count << " to " << most;
    }
  }
}

TEST(Heatmap, DrawsOddSizesAndRefusesWrongSizes) {
  Heatmap map;
  map.rows = 3, map.cols = 5;
  map.values = {1, 2, 3, NAN, kInfinity, 1, 1, 1, 1, 1, -1, 0, 1e308, 2, 3};
  const auto svg = svg_heatmap(map);
  EXPECT_EQ(markup_fault("\n" + svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_EQ(std::count(svg.begin(), svg.end(), '#'), 12 + 24);  // drawable cells, and the scale
  map.rows = 4;
  EXPECT_THROW(svg_heatmap(map), std::invalid_argument);
  map.rows = map.cols = int64_t{1} << 32;
  EXPECT_THROW(svg_heatmap(map), std::invalid_argument);
}

}  // namespace
}  // namespace translution
