#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "translution/core/units.h"

namespace translution::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

/// A table of text with aligned columns. Titles are printed if one of them is not empty. Columns
/// whose cells are all empty are left out.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One cell per column; missing cells are empty.
  void add(std::vector<std::string> row);
  /// Every line starts with two spaces and ends in a line feed.
  std::string str() const;

 private:
  size_t width(size_t column) const;
  std::string line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace translution::cli
