#include "translution/ops/workspace.h"

#include <cstdlib>
#include <string>

#include "translution/core/error.h"

namespace translution {

int64_t default_workspace() {
  static const int64_t bytes = [] {
    const char* text = std::getenv("TRANSLUTION_WORKSPACE");
    if (text == nullptr || *text == '\0') return int64_t{512} << 20;
    char* end = nullptr;
    const int64_t count = std::strtoll(text, &end, 10);
    const std::string suffix = end;
    const int shift = suffix.empty()  ? 0
                      : suffix == "K" ? 10
                      : suffix == "M" ? 20
                      : suffix == "G" ? 30
                                      : -1;
    require(end != text && shift >= 0 && count >= 0 && count <= INT64_MAX >> shift,
            "TRANSLUTION_WORKSPACE: wanted bytes such as 0, 65536, 512M or 4G, got '", text, "'");
    return count << shift;
  }();
  return bytes;
}

}  // namespace translution
