#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace translution::cli {

/// JSON for people and programs to read. Bytes that are not UTF-8, as a file's name may have,
/// become U+FFFD.
template <typename Json>
std::string json_text(const Json& json, int indent = 2) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace translution::cli
