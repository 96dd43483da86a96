#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace translution::detail {

/// Formats with thousands separators: "116,164,138".
inline std::string grouped(int64_t count) {
  auto text = std::to_string(count);
  const auto first = static_cast<int64_t>(text.find_first_not_of('-'));
  for (auto position = static_cast<int64_t>(text.size()) - 3; position > first; position -= 3)
    text.insert(static_cast<size_t>(position), ",");
  return text;
}

inline std::string grouped(double count) {
  return grouped(static_cast<int64_t>(std::llround(count)));
}

/// Formats the value in the largest unit in which it is at least 1; each unit is `step` times the
/// previous one.
template <size_t count>
std::string in_units(double value, double step, const char* const (&units)[count]) {
  size_t unit = 0;
  for (; value >= step && unit + 1 < count; ++unit) value /= step;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f %s", unit == 0 ? 0 : 2, value, units[unit]);
  return text;
}

/// Formats bytes: "1.73 GiB".
inline std::string in_bytes(double bytes) {
  return in_units(bytes, 1024, {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

/// Formats floating-point operations: "3.27 GFLOP".
inline std::string in_flops(double flops) {
  return in_units(flops, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"});
}

}  // namespace translution::detail
