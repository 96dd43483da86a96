#include "translution/core/roles.h"

#include "translution/core/error.h"

namespace translution {

using namespace detail;

Roles Roles::parse(const std::string& text) {
  Roles roles{false, false, false};
  if (text == "none") return roles;
  require(!text.empty(), "roles: expected some of q, k and v, or 'none', got an empty string");
  for (const char letter : text) {
    bool* role = letter == 'q'   ? &roles.q
                 : letter == 'k' ? &roles.k
                 : letter == 'v' ? &roles.v
                                 : nullptr;
    require(role != nullptr, "roles: expected some of q, k and v, or 'none', got '", text, "'");
    require(!*role, "roles: expected each of q, k and v at most once, got '", text, "'");
    *role = true;
  }
  return roles;
}

std::string Roles::str() const {
  const std::string text = std::string(q ? "q" : "") + (k ? "k" : "") + (v ? "v" : "");
  return text.empty() ? "none" : text;
}

}  // namespace translution
