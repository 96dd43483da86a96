#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace translution::cli {

void Table::add(std::vector<std::string> row) {
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

// 0 if the column is left out.
size_t Table::width(size_t column) const {
  size_t width = 0;
  for (const auto& row : rows_) width = std::max(width, row[column].size());
  return width == 0 ? 0 : std::max(width, columns_[column].title.size());
}

std::string Table::line(const std::vector<std::string>& cells,
                        const std::vector<size_t>& widths) const {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (widths[i] == 0) continue;
    text += columns_[i].align == Align::right ? fmt::format("  {:>{}}", cells[i], widths[i])
                                              : fmt::format("  {:<{}}", cells[i], widths[i]);
  }
  return text.erase(text.find_last_not_of(' ') + 1) + "\n";
}

std::string Table::str() const {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    widths.push_back(width(i));
  }
  const bool titled = std::any_of(titles.begin(), titles.end(),
                                  [](const std::string& title) { return !title.empty(); });
  std::string text = titled ? line(titles, widths) : "";
  for (const auto& row : rows_) text += line(row, widths);
  return text;
}

}  // namespace translution::cli
