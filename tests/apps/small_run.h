#pragma once

#include <gtest/gtest.h>

#include <string>

#include "translution/train/metrics.h"

// A run of `translution train` that takes about a second, with all that is drawn at random: places,
// order, dropout.
namespace translution {

constexpr int64_t kSmallSteps = 12;

/// A directory that goes away with the test.
class SmallRun : public ::testing::Test {
 protected:
  SmallRun();
  ~SmallRun() override;

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  /// The arguments of a run into path(name).
  std::string train(const std::string& name, const std::string& more = "") const;
  /// Expects success; the directory of the run.
  std::string trained(const std::string& name, const std::string& more = "") const;

 private:
  const std::string directory_;
};

/// The directory of a run that nothing disturbed; made once.
const std::string& undisturbed();

/// SHA-256 of the last weights of a run.
std::string weights_of(const std::string& run);

/// Its log without what depends on the time and the machine.
std::vector<Metrics> log_of(const std::string& run);

/// Expects the weights and the log of the undisturbed run.
void expect_undisturbed(const std::string& run);

}  // namespace translution
