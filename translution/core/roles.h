#pragma once

#include <string>

#include "translution/core/export.h"

namespace translution {

/// Which of query, key and value are computed with a matrix per offset.
struct TRANSLUTION_API Roles {
  bool q = true;
  bool k = true;
  bool v = true;

  /// Parses "qkv", "v", "qk"… in any order; "none" is the empty subset.
  static Roles parse(const std::string& text);
  std::string str() const;

  bool any() const { return q || k || v; }
  bool operator==(const Roles& other) const { return q == other.q && k == other.k && v == other.v; }
};

}  // namespace translution
