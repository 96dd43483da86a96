#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace translution::detail {

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

/// The value in the largest unit that leaves at least 1 of it; units grow by `step`.
template <size_t count>
std::string in_units(double value, double step, const char* const (&units)[count]) {
  size_t unit = 0;
  for (; value >= step && unit + 1 < count; ++unit) value /= step;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f %s", unit == 0 ? 0 : 2, value, units[unit]);
  return text;
}

/// "1.73 GiB".
inline std::string in_bytes(double bytes) {
  return in_units(bytes, 1024, {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

/// "3.27 GFLOP".
inline std::string in_flops(double flops) {
  return in_units(flops, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"});
}

}  // namespace translution::detail
