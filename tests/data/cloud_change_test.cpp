#include "translution/data/cloud_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace translution {
namespace {

using ::testing::ElementsAre;

// Points n with position (n, 2 n, 3 n) and features (n, 0, 0, 1).
PointCloud line_of(int64_t count) {
  PointCloud cloud{3, 4, {}, {}};
  for (int64_t n = 0; n < count; ++n) {
    const auto at = static_cast<float>(n);
    cloud.positions.insert(cloud.positions.end(), {at, 2 * at, 3 * at});
    cloud.features.insert(cloud.features.end(), {at, 0, 0, 1});
  }
  return cloud;
}

TEST(CloudChange, KeepsRandomPointsInTheirOrder) {
  std::vector<int> counts(20);
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    auto cloud = line_of(20);
    Random random({seed});
    keep_points(5, random, cloud);
    ASSERT_EQ(cloud.size(), 5);
    ASSERT_EQ(cloud.features.size(), 20u);
    for (size_t p = 0; p < 5; ++p) {
      if (p > 0) {
        ASSERT_GT(cloud.features[4 * p], cloud.features[4 * p - 4]);
      }
      ASSERT_EQ(cloud.positions[3 * p + 1], 2 * cloud.features[4 * p]);
      ++counts[static_cast<size_t>(cloud.features[4 * p])];
    }
  }
  for (const int count : counts) EXPECT_NEAR(count, 250, 60) << "every point as often";
}

double dot(const float* a, const float* b) {
  return double{a[0]} * b[0] + double{a[1]} * b[1] + double{a[2]} * b[2];
}

TEST(CloudChange, RotatesPositionsAndNormals) {
  const auto normals = normals_in({"nx", "ny", "nz", "red"});
  ASSERT_TRUE(normals.has_value());
  EXPECT_THAT(*normals, ElementsAre(0, 1, 2));
  EXPECT_FALSE(normals_in({"nx", "ny", "red"}).has_value());
  bool moved_up = false;
  for (const auto rotation : {Rotation::upright, Rotation::any})
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto before = line_of(3);
      auto after = before;
      Random random({seed});
      rotate_cloud(rotation, normals, random, after);
      for (size_t p = 0; p < 3; ++p) {  // lengths and angles stay
        const float *at = &after.positions[3 * p], *was = &before.positions[3 * p];
        EXPECT_NEAR(dot(at, at), dot(was, was), 1e-4);
        EXPECT_NEAR(dot(at, &after.features[4 * p]), dot(was, &before.features[4 * p]), 1e-4);
        EXPECT_EQ(after.features[4 * p + 3], 1);
        if (rotation == Rotation::upright) {
          EXPECT_EQ(at[2], was[2]);
        }
        moved_up |= std::abs(at[2] - was[2]) > 1;
      }
    }
  EXPECT_TRUE(moved_up);
}

TEST(CloudChange, AnyRotationIsUniform) {
  std::array<double, 3> mean{}, square{};
  constexpr int kDraws = 4000;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    PointCloud cloud{3, 1, {0, 0, 1}, {1}};
    Random random({seed});
    rotate_cloud(Rotation::any, {}, random, cloud);
    for (size_t a = 0; a < 3; ++a) {
      mean[a] += cloud.positions[a] / kDraws;
      square[a] += cloud.positions[a] * cloud.positions[a] / kDraws;
    }
  }
  for (size_t a = 0; a < 3; ++a) {
    EXPECT_NEAR(mean[a], 0, 0.04);
    EXPECT_NEAR(square[a], 1.0 / 3, 0.02);
  }
}

TEST(CloudChange, RotatesInThePlaneAndNotOnALine) {
  PointCloud plane{2, 1, {3, 4}, {1}};
  Random random({1});
  rotate_cloud(Rotation::any, {}, random, plane);
  EXPECT_NEAR(std::hypot(plane.positions[0], plane.positions[1]), 5, 1e-5);
  PointCloud line{1, 1, {3}, {1}};
  EXPECT_THROW(rotate_cloud(Rotation::any, {}, random, line), std::invalid_argument);
}

}  // namespace
}  // namespace translution
