#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// Studies that `make test` does in small and `make stress`, which sets TRANSLUTION_STRESS, in full.
namespace translution {

/// How often: `small` times in the tests, `full` times under stress.
inline int64_t repeats(int64_t small, int64_t full) {
  return std::getenv("TRANSLUTION_STRESS") != nullptr ? full : small;
}

/// A line of the table that `make stress` prints.
inline void print_figure(const std::string& what, const std::string& value) {
  std::printf("  %-64s %s\n", what.c_str(), value.c_str());
  std::fflush(stdout);
}

}  // namespace translution
