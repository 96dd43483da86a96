#include <algorithm>

#include "commands.h"
#include "model_flags.h"
#include "ranks.h"
#include "translution/core/error.h"

namespace translution::cli {

using namespace detail;

namespace {

constexpr int64_t kMostRanks = 1024;
constexpr const char* kLaunchExamples =
    "Each process finds its place in the environment variables RANK, LOCAL_RANK, WORLD_SIZE,\n"
    "LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as with torchrun. Lines of output begin with\n"
    "the number of their process. If one fails, all stop, with its exit code. SIGINT (Ctrl-C),\n"
    "SIGTERM and SIGHUP save a checkpoint and stop all.\n"
    "\n"
    "With --shards S, a power of two, the result is the same, bit for bit, for 1, 2, 4, … up to S\n"
    "processes.\n"
    "\n"
    "Example:\n"
    "  translution launch --ranks 4 -- train --shards 8 --method translution --out runs/t";

struct LaunchFlags {
  explicit LaunchFlags(Command command) {
    ranks = command.option("--ranks", "N", "number of processes");
    command.argument("COMMAND", arguments, "behind --: train with its options");
    command.require_one_of({ranks});
  }

  Option ranks;
  std::vector<std::string> arguments;
};

void run_launch(const LaunchFlags& flags) {
  require(flags.arguments.front() == "train", "launch: expected -- train with its options, got '",
          flags.arguments.front(), "'; other commands run in one process");
  run_ranks(static_cast<int>(value_of(flags.ranks).number(1, kMostRanks)), flags.arguments);
}

}  // namespace

void add_launch(Command program) {
  auto command = program.add_command("launch", "Train in several processes on this machine");
  const auto flags = std::make_shared<LaunchFlags>(command);
  command.footer(kLaunchExamples);
  command.run([flags] { run_launch(*flags); });
}

}  // namespace translution::cli
