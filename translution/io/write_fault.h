#pragma once

#include <cstdint>
#include <string>

#include "translution/core/names.h"

namespace translution {

/// For tests: what goes wrong in one of the system calls by which disk.h changes the disk.
enum class Fault { none, enospc, torn, cut, interrupt, kill };

inline constexpr Named<Fault> kFaults[] = {
    {Fault::none, "none", "nothing"},
    {Fault::enospc, "enospc", "the call fails for lack of space"},
    {Fault::torn, "torn", "half of a write is done, then it fails for lack of space"},
    {Fault::cut, "cut", "half of a write is done and reported as such, which is no error"},
    {Fault::interrupt, "interrupt", "a signal interrupts the call, which is no error either"},
    {Fault::kill, "kill", "half of a write is done, then the process is killed"},
};

/// Which call it happens to, counted from 1. "enospc:7" as text; the environment variable
/// TRANSLUTION_WRITE_FAULT holds such a text for tests of the program.
struct WriteFault {
  Fault kind = Fault::none;
  int64_t call = 0;

  static WriteFault parse(const std::string& text);
};

/// For this process from now on; the count of calls starts anew.
void set_write_fault(WriteFault fault);

/// Calls since then.
int64_t count_disk_calls();

/// Counts a call, and says what happens to it. Only disk.cpp asks.
Fault next_fault();

}  // namespace translution
