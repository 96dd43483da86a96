#pragma once

#include <optional>
#include <string>
#include <vector>

#include "translution/core/error.h"
#include "translution/core/export.h"

namespace translution {

/// The known name that `name` most likely stands for, or nothing. Near are names of which one
/// begins with the other, names of which one has all words of the other, and names that differ in
/// at most a third of their letters. Case, and '_' for '-', do not count.
TRANSLUTION_API std::optional<std::string> near_name(const std::string& name,
                                                     const std::vector<std::string>& known);

/// The end of a message about an unknown name: "; did you mean 'cosine'?", where none is near
/// "; expected one of cosine, constant", and nothing where there are too many to list.
TRANSLUTION_API std::string name_hint(const std::string& name,
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

/// The value called `name`, or one line with a hint.
template <typename Value, size_t count>
Value parse_name(const char* what, const Named<Value> (&table)[count], const std::string& name) {
  for (const auto& entry : table)
    if (name == entry.name) return entry.value;
  throw std::invalid_argument(
      detail::join("unknown ", what, " '", name, "'", name_hint(name, names_of(table))));
}

}  // namespace translution
