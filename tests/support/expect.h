#pragma once

#include <gtest/gtest.h>

#include "tests/support/cases.h"

namespace translution::testing {

/// Allowed difference between sums of doubles in different orders, relative to the largest value.
constexpr double kRounding = 1e-12;

inline void expect_oracle(const Config& config) {
  SCOPED_TRACE(config.str());
  const Case c(config);
  EXPECT_LE(error(c.run(), c.expected()), kRounding);
}

}  // namespace translution::testing
