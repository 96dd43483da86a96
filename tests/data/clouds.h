#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "translution/data/loader.h"

namespace translution::testing {

inline void expect_same_batch(const Batch& a, const Batch& b) {
  EXPECT_TRUE(a.input.equal(b.input));
  EXPECT_TRUE(a.target.equal(b.target));
  EXPECT_TRUE(a.positions.equal(b.positions));
  EXPECT_TRUE(a.mask.equal(b.mask));
}

/// Expects the same batches from any number of loader threads, over two epochs.
inline void expect_same_for_any_workers(const std::shared_ptr<const Dataset>& set, int64_t batch) {
  const auto load = [&](int64_t workers) {
    Loader loader(set, {training_order(batch, 3), workers});
    std::vector<Batch> batches;
    for (int64_t i = 0; i < 2 * loader.batches_per_epoch(); ++i)
      batches.push_back(loader.next()->batch);
    return batches;
  };
  const auto alone = load(0);
  for (const int64_t workers : {1, 3}) {
    const auto batches = load(workers);
    ASSERT_EQ(batches.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) expect_same_batch(batches[i], alone[i]);
  }
}

}  // namespace translution::testing
