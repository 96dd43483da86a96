#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace translution {

/// JSON for formats of which no two readers may disagree: no key twice in an object, nothing nested
/// more than `depth` deep. One line with the place where the text is something else.
nlohmann::json parse_strict_json(std::string_view text, int depth);

}  // namespace translution
