#pragma once

#include <string>
#include <vector>

namespace translution::cli {

/// Runs this program `count` times with the arguments, with the environment variables that torchrun
/// sets. Prints their output line by line behind "[RANK] "; an error of several ranks, once. Passes
/// SIGINT, SIGTERM and SIGHUP on to all. When one fails, kills the others. Returns when all have
/// ended without an error; else throws Stopped with the exit code of the first one that failed.
void run_ranks(int count, const std::vector<std::string>& arguments);

}  // namespace translution::cli
