#pragma once

#include <cstdint>
#include <string>

#include "translution/core/names.h"

// Faults in the system calls by which the library changes the disk. write_fault.cpp defines the
// calls (open, write, fsync and others) in front of those of the C library: link it into a test,
// or load it into the program with LD_PRELOAD (program.h).
namespace translution {

/// What goes wrong in one call.
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
/// TRANSLUTION_WRITE_FAULT holds such a text.
struct WriteFault {
  Fault kind = Fault::none;
  int64_t call = 0;

  static WriteFault parse(const std::string& text);
};

/// For this process from now on; the count of calls starts anew.
void set_write_fault(WriteFault fault);

/// Calls since then.
int64_t count_disk_calls();

}  // namespace translution
