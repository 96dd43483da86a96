#pragma once

#include <optional>
#include <string>
#include <vector>

#include "translution/core/error.h"
#include "translution/core/export.h"

namespace translution {

/// The known name that is closest to `name`, or nothing if none is close. Two names are close if
/// one is a prefix of the other, if one has all words of the other, or if they differ in at most a
/// third of their letters. Case is ignored, and '_' equals '-'.
TRANSLUTION_API std::optional<std::string> near_name(const std::string& name,
                                                     const std::vector<std::string>& known);

/// The end of a message about an unknown name: "; did you mean 'cosine'?" or, if no name is close,
/// "; expected one of cosine, constant". Empty if there are more than 12 names to list.
TRANSLUTION_API std::string name_hint(const std::string& name,
                                      const std::vector<std::string>& known);

/// A value of an enumeration with its name and a one-line description; used in constant arrays.
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

/// The value called `name`. Throws std::invalid_argument with a hint if there is none.
template <typename Value, size_t count>
Value parse_name(const char* what, const Named<Value> (&table)[count], const std::string& name) {
  for (const auto& entry : table)
    if (name == entry.name) return entry.value;
  throw std::invalid_argument(
      detail::join("unknown ", what, " '", name, "'", name_hint(name, names_of(table))));
}

}  // namespace translution
