#pragma once

#include <gtest/gtest.h>

#include <string>

#include "translution/train/metrics.h"

// A run of `translution train` that takes about a second and uses all random numbers: placement,
// sample order, dropout.
namespace translution {

constexpr int64_t kSmallSteps = 12;

/// A fixture with a temporary directory.
class SmallRun : public ::testing::Test {
 protected:
  SmallRun();
  ~SmallRun() override;

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  /// The arguments of a run into path(name).
  std::string train(const std::string& name, const std::string& more = "") const;
  /// Trains and expects success. Returns the run directory.
  std::string trained(const std::string& name, const std::string& more = "") const;

 private:
  const std::string directory_;
};

/// The directory of an uninterrupted run, trained once.
const std::string& undisturbed();

/// SHA-256 of the last weights of a run.
std::string weights_of(const std::string& run);

/// The log of a run without values that depend on time or machine.
std::vector<Metrics> log_of(const std::string& run);

/// Expects the weights and the log of the undisturbed run.
void expect_undisturbed(const std::string& run);

}  // namespace translution
