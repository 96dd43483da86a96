// Any bytes as a PLY file either give finite points with all features, or a std::runtime_error.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "translution/data/ply.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto header = translution::parse_ply_header(bytes, "input");
    const auto cloud = translution::parse_ply(bytes, "input", header.features());
    if (cloud.size() != header.vertex().count) std::abort();
    if (cloud.features.size() != static_cast<size_t>(cloud.size() * cloud.channels)) std::abort();
    for (const float value : cloud.positions)
      if (!std::isfinite(value)) std::abort();
    for (const float value : cloud.features)
      if (!std::isfinite(value)) std::abort();
  } catch (const std::runtime_error&) {
  }
  return 0;
}
