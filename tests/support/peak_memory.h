#pragma once

#include <malloc.h>

#include <fstream>
#include <string>

#include "translution/ops/runtime.h"

namespace translution::testing {

constexpr double kMegabyte = 1e6;

/// A field of /proc/self/status in MB, or -1 if it is missing.
inline double memory_status(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    double kilobytes = 0;
    if (word == field + ":" && file >> kilobytes) return kilobytes * 1024 / kMegabyte;
  }
  return -1;
}

/// The peak growth of the process during the work in MB; below 0 if it cannot be measured.
template <typename Work>
double peak_growth(Work work) {
  runtime().release_pool();
  malloc_trim(0);
  if (!(std::ofstream("/proc/self/clear_refs") << 5).flush()) return -1;  // resets the peak
  const double before = memory_status("VmRSS");
  work();
  return memory_status("VmHWM") - before;
}

}  // namespace translution::testing
