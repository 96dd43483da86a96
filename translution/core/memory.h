#pragma once

#include <cstdint>

#include "translution/core/export.h"

namespace translution {

/// The memory that this process may take: that of the machine, or less where a control group or
/// `ulimit -v` says so.
TRANSLUTION_API int64_t usable_bytes();

}  // namespace translution
