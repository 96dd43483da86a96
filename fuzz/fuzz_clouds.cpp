// Any text as clouds either gives points with all features and one target per cloud, or a
// std::runtime_error.

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "translution/data/cloud_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto text =
        translution::parse_cloud_text({reinterpret_cast<const char*>(data), size}, "input");
    if (text.clouds.empty()) std::abort();
    const size_t targets = text.classes.size() + text.numbers.size();
    if (targets != (text.targets == translution::CloudTargets::none ? 0 : text.clouds.size()))
      std::abort();
    for (const auto& cloud : text.clouds) {
      if (cloud.size() < 1 || cloud.axes != text.axes) std::abort();
      if (cloud.features.size() != static_cast<size_t>(cloud.size() * cloud.channels)) std::abort();
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}
