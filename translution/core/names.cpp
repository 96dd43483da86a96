#include "translution/core/names.h"

#include <algorithm>
#include <numeric>

namespace translution {
namespace {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// Finishing a name that was broken off is one edit.
size_t edits(const std::string& name, const std::string& other) {
  const bool begins = name.size() > 1 && other.rfind(name, 0) == 0;
  return begins ? 1 : edit_distance(name, other);
}

}  // namespace

std::string nearest_name(const std::string& name, const std::vector<std::string>& known) {
  require(!known.empty(), "nearest_name: no names to choose from");
  return *std::min_element(
      known.begin(), known.end(),
      [&](const std::string& a, const std::string& b) { return edits(name, a) < edits(name, b); });
}

std::optional<std::string> similar_name(const std::string& name,
                                        const std::vector<std::string>& known) {
  if (known.empty()) return std::nullopt;
  const auto nearest = nearest_name(name, known);
  if (2 * edits(name, nearest) > nearest.size()) return std::nullopt;
  return nearest;
}

}  // namespace translution
