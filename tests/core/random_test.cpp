#include "translution/core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace translution {
namespace {

TEST(Random, DependsOnItsKeyOnly) {
  EXPECT_EQ(Random({1, 2, 3}).bits(), Random({1, 2, 3}).bits());
  std::set<uint64_t> first;
  for (uint64_t a = 0; a < 30; ++a)
    for (uint64_t b = 0; b < 30; ++b) first.insert(Random({a, b}).bits());
  first.insert(Random({0}).bits());
  first.insert(Random({0, 0, 0}).bits());
  EXPECT_EQ(first.size(), 902u);
}

TEST(Random, HasTheMomentsOfItsDistributions) {
  Random random({7});
  double sum = 0, squares = 0, mean = 0;
  std::vector<int> hits(5);
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal(), u = random.uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += x, squares += x * x, mean += u;
    ++hits[random.below(5)];
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.03);
  EXPECT_NEAR(mean / kDraws, 0.5, 0.005);
  for (const int count : hits) EXPECT_NEAR(count, kDraws / 5, 600);
}

TEST(Random, PermutationHoldsEveryNumberOnce) {
  auto order = permutation(1000, Random({3}));
  EXPECT_NE(order[0] * 1000 + order[1], permutation(1000, Random({4}))[0] * 1000 + order[1]);
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(order[i], i);
  EXPECT_TRUE(permutation(0, Random({3})).empty());
}

}  // namespace
}  // namespace translution
