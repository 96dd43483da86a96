#include "translution/ops/implementation.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace translution {
namespace {

// How many PortableOnly live; one more for a run under TRANSLUTION_IMPL=portable.
std::atomic<int>& portable_count() {
  static std::atomic<int> count = [] {
    const char* wanted = std::getenv("TRANSLUTION_IMPL");
    if (wanted == nullptr || *wanted == '\0' || std::strcmp(wanted, "fused") == 0) return 0;
    TORCH_CHECK(std::strcmp(wanted, "portable") == 0,
                "TRANSLUTION_IMPL: wanted fused or portable, got '", wanted, "'");
    return 1;
  }();
  return count;
}

}  // namespace

PortableOnly::PortableOnly() { ++portable_count(); }
PortableOnly::~PortableOnly() { --portable_count(); }

bool fused_enabled() { return portable_count() == 0; }

}  // namespace translution
