#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"

namespace translution {

/// Options of small trainings: digits, steps, and both with a small model.
inline const std::string kDigits =
    "--data digits:64 --canvas 42 --train-on dynamic --placement fresh --eval-limit 32 ";
inline const std::string kSteps =
    "--threads 1 --batch 16 --log-every 1 --save-every 2 --schedule constant ";
inline const std::string kVit = kDigits + kSteps + "--dropout 0.1 --model vit-2x24x3x48/21 ";

/// Waits until the condition holds, at most a minute.
template <typename Condition>
bool wait_for(const Condition& condition) {
  for (int i = 0; i < 60000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

/// The processes of `launch`.
std::vector<pid_t> children_of(pid_t parent);

/// Another one for each world: a port that was closed may be busy for a while.
int next_port();

/// Runs of several processes. Skips tests if this build has no c10d.
class LaunchedRun : public SmallRun {
 protected:
  void SetUp() override;
  /// The arguments of a training in this number of processes; 0: without `launch`.
  std::string launch(int ranks, const std::string& arguments, const std::string& name) const;
  /// Trains and expects success. Returns the run directory.
  std::string trained_by(int ranks, const std::string& arguments, const std::string& name) const;
  /// The same, faster: the processes find their places in the environment, without `launch`.
  std::string trained_together(int ranks, const std::string& arguments,
                               const std::string& name) const;

  static std::vector<double> losses_of(const std::string& run);
};

}  // namespace translution
