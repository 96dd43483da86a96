#pragma once

#include <cstdint>

#include "translution/core/export.h"

namespace translution {

/// Memory that this process may use, in bytes: that of the machine, or the limit of a control group
/// or of `ulimit -v` or `ulimit -d` if lower.
TRANSLUTION_API int64_t usable_bytes();

}  // namespace translution
