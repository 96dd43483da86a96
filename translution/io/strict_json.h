#pragma once

#include <string_view>

#include "translution/core/export.h"

namespace translution {

/// For formats of which no two readers may disagree: refuses text that is no JSON, has a key twice
/// in an object, or is nested more than `depth` deep, in one line with the place.
TRANSLUTION_API void check_strict_json(std::string_view text, int depth);

}  // namespace translution
