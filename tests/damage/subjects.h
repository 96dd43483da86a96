#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/damage/lies.h"
#include "tests/support/temp_dir.h"

namespace translution::testing {

/// The bytes of a file after something has happened to them.
struct Damage {
  std::string what;
  std::string bytes;
  bool must_be_found = false;  ///< otherwise success is right too, as with another pixel
};

/// A file that the program reads, and the call that reads it.
struct Subject {
  std::string name;
  std::string tree;       ///< the directory that it lies in
  std::string file;       ///< below the tree
  std::string arguments;  ///< of the program; {} stands for a copy of the tree

  /// Changes within these bytes cannot go unnoticed.
  size_t checked_from = 0, checked_to = 0;
  /// Nor can a missing end.
  bool ends = true;
  Lies lies = {};
  /// Done to the damaged copy, to make checksums fit again.
  std::function<void(const std::string& copy)> seal = {};

  std::string bytes() const { return get_bytes(tree + "/" + file); }
};

/// Files of every format below `base`, made by the program itself where it can.
std::vector<Subject> make_subjects(const TempDir& base);

/// What happens to a subject the n-th time: in turns a planned damage (ends missing at every
/// boundary, lies) and one drawn from the seed.
Damage make_damage(const Subject& subject, uint64_t seed, int64_t n);

}  // namespace translution::testing
