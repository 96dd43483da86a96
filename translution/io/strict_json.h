#pragma once

#include <string_view>

#include "translution/core/export.h"

namespace translution {

/// Throws std::runtime_error if the text is not JSON, has a duplicate key in an object, or is
/// nested more than `depth` levels deep. For formats that all readers must interpret alike.
TRANSLUTION_API void check_strict_json(std::string_view text, int depth);

}  // namespace translution
