#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace translution::cli {

/// Formats JSON. Bytes that are not UTF-8, as in some file names, become U+FFFD.
template <typename Json>
std::string json_text(const Json& json, int indent = 2) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace translution::cli
