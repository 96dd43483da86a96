#include "translution/data/digits.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "tests/support/thread_count.h"
#include "translution/data/labelled_images.h"

namespace translution {
namespace {

// Mean image of every class, [10,784].
torch::Tensor class_means(const LabelledImages& digits) {
  const auto pixels = digits.pixels.flatten(1).to(torch::kFloat);
  auto means = torch::zeros({10, pixels.size(1)});
  for (int64_t label = 0; label < 10; ++label)
    means[label] = pixels.index({digits.labels == label}).mean(0);
  return means;
}

double share(const torch::Tensor& correct) {
  return correct.to(torch::kDouble).mean().item<double>();
}

TEST(Digits, DependOnlyOnSeedAndIndexForAnyNumberOfThreads) {
  ThreadCount threads(1);
  const auto one = make_digits(301, 7);
  threads.set(3);
  const auto three = make_digits(500, 7), other = make_digits(301, 8);
  EXPECT_TRUE(torch::equal(one.pixels, three.pixels.narrow(0, 0, 301)));
  EXPECT_TRUE(torch::equal(one.labels, three.labels.narrow(0, 0, 301)));
  EXPECT_FALSE(torch::equal(one.labels, other.labels));
}

TEST(Digits, AreAllDifferentWithinASetAndBetweenSeeds) {
  std::set<std::string> seen;
  for (const uint64_t seed : {1, 2}) {
    const auto digits = make_digits(2000, seed);
    const char* pixels = static_cast<const char*>(digits.pixels.data_ptr());
    for (int64_t i = 0; i < digits.size(); ++i) seen.emplace(pixels + i * 784, 784);
  }
  EXPECT_EQ(seen.size(), 4000u);
}

TEST(Digits, AllClassesAreEquallyLikely) {
  const auto counts = torch::bincount(make_digits(10000, 3).labels, {}, 10);
  EXPECT_EQ(counts.size(0), 10);
  EXPECT_GT(counts.min().item<int64_t>(), 880);
  EXPECT_LT(counts.max().item<int64_t>(), 1120);
}

TEST(Digits, AreBrightOnBlackNearTheCentre) {
  const auto digits = make_digits(3000, 4);
  const auto border = digits.pixels.to(torch::kFloat).clone();
  EXPECT_EQ(border.narrow(1, 0, 2).sum().item<float>(), 0) << "the top two rows are black";
  EXPECT_EQ(border.narrow(1, 26, 2).sum().item<float>(), 0);
  EXPECT_EQ(border.narrow(2, 0, 2).sum().item<float>(), 0);
  EXPECT_EQ(border.narrow(2, 26, 2).sum().item<float>(), 0);
  EXPECT_GT(border.amax({1, 2}).min().item<float>(), 128) << "a digit without ink";
  // MNIST: 0.13
  EXPECT_NEAR(border.mean().item<float>() / 255, 0.13, 0.03);
  const auto middle = border.narrow(1, 4, 20).narrow(2, 4, 20).sum().item<double>();
  EXPECT_GT(middle, 0.97 * border.sum().item<double>());
}

TEST(Digits, NearestMeanClassifiesMostButNotAll) {
  const auto train = make_digits(4000, 5), test = make_digits(2000, 6);
  const auto distances =
      torch::cdist(test.pixels.flatten(1).to(torch::kFloat), class_means(train));  // [n,10]
  const double right = share(distances.argmin(1) == test.labels);
  EXPECT_GT(right, 0.6) << "too hard: the classes are not distinguishable";
  EXPECT_LT(right, 0.97) << "too easy: a template classifies the digits";
}

TEST(Digits, VaryMoreWithinAClassThanBetweenClassMeans) {
  const auto digits = make_digits(2000, 9);
  const auto means = class_means(digits);
  const auto own = means.index({digits.labels});
  const double within =
      (digits.pixels.flatten(1).to(torch::kFloat) - own).square().sum(1).mean().item<double>();
  const double between = (means - means.mean(0)).square().sum(1).mean().item<double>();
  EXPECT_GT(within, between);
}

TEST(Digits, RefuseInvalidLabelsAndCounts) {
  std::array<uint8_t, 784> pixels;
  Random random({1});
  EXPECT_THROW(draw_digit(10, random, pixels.data()), std::invalid_argument);
  EXPECT_THROW(draw_digit(-1, random, pixels.data()), std::invalid_argument);
  EXPECT_THROW(make_digits(-1, 0), std::invalid_argument);
  EXPECT_EQ(make_digits(0, 0).size(), 0);
}

}  // namespace
}  // namespace translution
