#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace translution {

/// "116,164,138".
inline std::string grouped(int64_t count) {
  auto text = std::to_string(count);
  const auto first = static_cast<int64_t>(text.find_first_not_of('-'));
  for (auto place = static_cast<int64_t>(text.size()) - 3; place > first; place -= 3)
    text.insert(static_cast<size_t>(place), ",");
  return text;
}

inline std::string grouped(double whole) {
  return grouped(static_cast<int64_t>(std::llround(whole)));
}

}  // namespace translution
