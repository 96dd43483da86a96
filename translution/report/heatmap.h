#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace translution {

/// A matrix as coloured cells, with its values as tooltips.
struct Heatmap {
  enum class Colours {
    share,  ///< one hue, from nothing at 0 to full at 1; suits light and dark pages
    range,  ///< dark to bright over many hues, from the lowest value to the highest
  };

  int64_t rows = 0, cols = 0;
  std::vector<double> values;  ///< row by row; what is not finite is left blank
  Colours colours = Colours::range;
  int cell = 12;  ///< side in pixels
  std::vector<std::string> row_names, col_names;
  std::string row_title, col_title;
  std::vector<std::string> texts;     ///< written in the cells; empty: none
  std::vector<std::string> tooltips;  ///< one per cell
  int64_t marked = -1;                ///< cell with a frame
};

/// The matrix as an SVG picture.
std::string svg_heatmap(const Heatmap& map);

/// Refuses a grid whose sides are not from 1 to 1024 or that does not have `count` cells.
void check_grid(const char* what, int64_t rows, int64_t cols, size_t count);

}  // namespace translution
