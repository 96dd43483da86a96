#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace translution {

/// A matrix drawn as coloured cells with tooltips.
struct Heatmap {
  enum class Colours {
    share,  ///< one hue, from transparent at 0 to opaque at 1; for light and dark pages
    range,  ///< several hues, dark at the lowest value to bright at the highest
  };

  int64_t rows = 0, cols = 0;
  std::vector<double> values;  ///< row by row; cells of values that are not finite stay blank
  Colours colours = Colours::range;
  int cell = 12;  ///< side of a cell in pixels
  std::vector<std::string> row_names, col_names;
  std::string row_title, col_title;
  std::vector<std::string> texts;     ///< written in the cells; empty: none
  std::vector<std::string> tooltips;  ///< one per cell
  int64_t marked = -1;                ///< index of a cell with a frame; -1: none
};

/// The matrix as an SVG picture.
std::string svg_heatmap(const Heatmap& map);

/// Throws unless both sides are from 1 to 1024 and the grid has `count` cells. `what` begins the
/// message.
void check_grid(const char* what, int64_t rows, int64_t cols, size_t count);

}  // namespace translution
