#include "tests/apps/launched_run.h"

#include <unistd.h>

#include <fstream>
#include <iterator>

#include "translution/core/random.h"
#include "translution/distributed/connection.h"

namespace translution {

std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

int next_port() {
  static Random random({static_cast<uint64_t>(getpid())});
  static int port = 20000 + static_cast<int>(random.below(9000));
  return port += 2;
}

void LaunchedRun::SetUp() {
  if (!has_c10d()) GTEST_SKIP() << "this build has no c10d";
}

std::string LaunchedRun::launch(int ranks, const std::string& arguments,
                                const std::string& name) const {
  const auto train = "train " + arguments + " --out " + path(name);
  return ranks == 0 ? train : "launch --ranks " + std::to_string(ranks) + " -- " + train;
}

std::string LaunchedRun::trained_by(int ranks, const std::string& arguments,
                                    const std::string& name) const {
  const auto outcome = run(launch(ranks, arguments, name));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return path(name);
}

std::string LaunchedRun::trained_together(int ranks, const std::string& arguments,
                                          const std::string& name) const {
  const auto port = std::to_string(next_port());
  std::vector<std::thread> processes;
  for (int rank = 0; rank < ranks; ++rank)
    processes.emplace_back([=] {
      const auto outcome =
          run(launch(0, arguments, name), "MASTER_PORT=" + port + " RANK=" + std::to_string(rank) +
                                              " WORLD_SIZE=" + std::to_string(ranks));
      EXPECT_EQ(outcome.code, 0) << "rank " << rank << ": " << outcome.err;
    });
  for (auto& process : processes) process.join();
  return path(name);
}

std::vector<double> LaunchedRun::losses_of(const std::string& run) {
  std::vector<double> losses;
  for (const auto& metrics : log_of(run))
    if (metrics.split == "train") losses.push_back(metrics.values.front().second);
  return losses;
}

}  // namespace translution
