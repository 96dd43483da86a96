#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/damage/lies.h"
#include "tests/support/temp_dir.h"

namespace translution::testing {

/// The bytes of a damaged file.
struct Damage {
  std::string what;
  std::string bytes;
  bool must_be_found = false;  ///< false: success is fine too, e.g. if one pixel differs
};

/// A file that the program reads, and the call that reads it.
struct Subject {
  std::string name;
  std::string tree;       ///< directory that contains the file
  std::string file;       ///< path relative to `tree`
  std::string arguments;  ///< of the program; {} is replaced by a copy of the tree

  /// Changes within these bytes must be detected.
  size_t checked_from = 0, checked_to = 0;
  /// Truncation must be detected.
  bool ends = true;
  Lies lies = {};
  /// Called on the damaged copy to recompute checksums.
  std::function<void(const std::string& copy)> seal = {};

  std::string bytes() const { return get_bytes(tree + "/" + file); }
};

/// Writes files of every format to `base`, with the program itself if it can.
std::vector<Subject> make_subjects(const TempDir& base);

/// The n-th damage of a subject: even n are planned (its lies, truncation at every boundary), odd n
/// are drawn from the seed.
Damage make_damage(const Subject& subject, uint64_t seed, int64_t n);

}  // namespace translution::testing
