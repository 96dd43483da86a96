#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// Studies that `make test` runs with few repeats and `make stress` (TRANSLUTION_STRESS) in full.
namespace translution {

/// Number of repeats: `small` in the tests, `full` under stress.
inline int64_t repeats(int64_t small, int64_t full) {
  return std::getenv("TRANSLUTION_STRESS") != nullptr ? full : small;
}

/// Prints a line of the table of `make stress`.
inline void print_figure(const std::string& what, const std::string& value) {
  std::printf("  %-64s %s\n", what.c_str(), value.c_str());
  std::fflush(stdout);
}

}  // namespace translution
