#pragma once

#include <optional>
#include <string>
#include <vector>

#include "translution/core/error.h"

namespace translution {

/// Of `known`, the name that takes the fewest edits to reach from `name`; finishing a name that was
/// broken off counts as one.
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

/// The same, if at most half of its letters have to be edited.
std::optional<std::string> similar_name(const std::string& name,
                                        const std::vector<std::string>& known);

/// The values of an enumeration with their names, in one table.
template <typename Value>
struct Named {
  Value value;
  const char* name;
  const char* summary;
};

template <typename Value, size_t count>
const char* name_of(const Named<Value> (&table)[count], Value value) {
  for (const auto& entry : table)
    if (entry.value == value) return entry.name;
  return "?";
}

template <typename Value, size_t count>
std::vector<std::string> names_of(const Named<Value> (&table)[count]) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.emplace_back(entry.name);
  return names;
}

/// The value called `name`, or one line with the nearest known name.
template <typename Value, size_t count>
Value parse_name(const char* what, const Named<Value> (&table)[count], const std::string& name) {
  for (const auto& entry : table)
    if (name == entry.name) return entry.value;
  throw std::invalid_argument(join("unknown ", what, " '", name, "'; did you mean '",
                                   nearest_name(name, names_of(table)), "'?"));
}

}  // namespace translution
