#pragma once

#include <cstdint>
#include <string>

#include "translution/core/names.h"

// Injects faults into the system calls with which the library writes to disk. write_fault.cpp
// overrides these calls (open, write, fsync and others) of the C library. Link it into a test, or
// load it into the program with LD_PRELOAD (program.h).
namespace translution {

/// The kind of fault in one call.
enum class Fault { none, enospc, torn, cut, interrupt, kill };

inline constexpr Named<Fault> kFaults[] = {
    {Fault::none, "none", "no fault"},
    {Fault::enospc, "enospc", "the call fails with ENOSPC"},
    {Fault::torn, "torn", "half of a write is done, then it fails with ENOSPC"},
    {Fault::cut, "cut", "a short write: half is done and reported, which is not an error"},
    {Fault::interrupt, "interrupt", "the call fails with EINTR, which is not an error either"},
    {Fault::kill, "kill", "half of a write is done, then the process is killed"},
};

/// A fault and the number of the call that it hits, counted from 1. As text, for example
/// "enospc:7", in the environment variable TRANSLUTION_WRITE_FAULT.
struct WriteFault {
  Fault kind = Fault::none;
  int64_t call = 0;

  static WriteFault parse(const std::string& text);
};

/// Sets the fault of this process and resets the count of calls.
void set_write_fault(WriteFault fault);

/// The number of calls since set_write_fault, or since the process started.
int64_t count_disk_calls();

}  // namespace translution
