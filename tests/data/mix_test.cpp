#include "translution/data/mix.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/data/pictures.h"

namespace translution {
namespace {

constexpr int64_t kClasses = 7, kRows = 9, kCols = 13;

// Image b has the value b + 1 everywhere and class b.
Batch make_batch(int64_t B) {
  Batch batch{torch::empty({B, 3, kRows, kCols}), torch::arange(B)};
  for (int64_t b = 0; b < B; ++b) batch.input[b].fill_(static_cast<double>(b + 1));
  return batch;
}

bool is_mixup(const torch::Tensor& image) { return image.eq(image[0][0][0]).all().item<bool>(); }

TEST(DrawBeta, HasTheMeanAndVarianceOfItsDistribution) {
  Random random({5});
  for (const auto& [a, b] : {std::pair{0.8, 0.8}, {1.0, 1.0}, {0.2, 0.5}, {3.0, 2.0}}) {
    double sum = 0, squares = 0;
    constexpr int kDraws = 100000;
    for (int i = 0; i < kDraws; ++i) {
      const double x = draw_beta(a, b, random);
      ASSERT_TRUE(x >= 0 && x <= 1);
      sum += x, squares += x * x;
    }
    const double mean = sum / kDraws, variance = squares / kDraws - mean * mean;
    EXPECT_NEAR(mean, a / (a + b), 0.005);
    EXPECT_NEAR(variance, a * b / ((a + b) * (a + b) * (a + b + 1)), 0.002);
  }
}

TEST(MixBatch, TargetsAreTheSharesOfThePixels) {
  constexpr int64_t B = 6;
  int mixups = 0, cutmixes = 0;
  for (uint64_t key = 0; key < 60; ++key) {
    Batch batch = make_batch(B);
    mix_batch(batch, kClasses, Random({key}));
    ASSERT_EQ(batch.target.sizes(), (std::vector<int64_t>{B, kClasses}));
    const bool mixup = is_mixup(batch.input[0]);
    ++(mixup ? mixups : cutmixes);
    for (int64_t b = 0; b < B; ++b) {
      const int64_t other = B - 1 - b;
      const float own = batch.target[b][b].item<float>();
      const float rest = batch.target[b][other].item<float>();
      ASSERT_EQ(batch.target[b].sum().item<float>(), 1.f);
      ASSERT_EQ(rest, 1 - own);
      const auto mine = batch.input[b].eq(b + 1.f).sum().item<int64_t>();
      const auto others = batch.input[b].eq(other + 1.f).sum().item<int64_t>();
      if (mixup) {
        ASSERT_EQ(batch.input[b][2][8][12].item<float>(), own * (b + 1) + rest * (other + 1));
      } else {
        ASSERT_EQ(mine + others, 3 * kRows * kCols);
        ASSERT_EQ(own, static_cast<float>(1 - others / (3.0 * kRows * kCols)));
      }
    }
  }
  EXPECT_GT(mixups, 15);
  EXPECT_GT(cutmixes, 15);
}

TEST(MixBatch, CutmixCopiesARectangleOfTheOtherImage) {
  for (uint64_t key = 0; key < 40; ++key) {
    Batch batch = make_batch(2);
    mix_batch(batch, kClasses, Random({key}));
    if (is_mixup(batch.input[0])) continue;
    const auto taken = batch.input[0][0].eq(2.f);  // [rows,cols]
    const auto rows = taken.any(1).sum().item<int64_t>(), cols = taken.any(0).sum().item<int64_t>();
    EXPECT_EQ(taken.sum().item<int64_t>(), rows * cols);
    EXPECT_TRUE(batch.input[1][2].eq(1.f).equal(taken));
  }
}

TEST(MixBatch, MiddleOfAnOddBatchIsMixedWithItself) {
  for (uint64_t key = 0; key < 20; ++key) {
    Batch batch = make_batch(3);
    mix_batch(batch, kClasses, Random({key}));
    EXPECT_TRUE(batch.input[1].eq(2.f).all().item<bool>());
    EXPECT_FLOAT_EQ(batch.target[1][1].item<float>(), 1);
  }
}

TEST(MixBatch, DependsOnlyOnItsKey) {
  Batch a = make_batch(5), b = make_batch(5), c = make_batch(5);
  mix_batch(a, kClasses, Random({3, 1}));
  mix_batch(b, kClasses, Random({3, 1}));
  mix_batch(c, kClasses, Random({3, 2}));
  EXPECT_TRUE(a.input.equal(b.input) && a.target.equal(b.target));
  EXPECT_FALSE(a.target.equal(c.target));
}

TEST(MixBatch, RefusesClassesOutOfRangeAndLeavesTheImagesUnchanged) {
  Batch batch = make_batch(4);
  EXPECT_EQ(message_of([&] { mix_batch(batch, 3, Random({1})); }),
            "mix_batch: expected a class below 3, got 3");
  EXPECT_TRUE(batch.input.equal(make_batch(4).input));
  batch.target = torch::zeros({3}, torch::kLong);
  EXPECT_EQ(message_of([&] { mix_batch(batch, 3, Random({1})); }),
            "mix_batch: expected 4 int64 classes, got 3");
}

TEST(MixBatch, EmptyBatchStaysEmpty) {
  Batch batch = make_batch(0);
  mix_batch(batch, kClasses, Random({1}));
  EXPECT_EQ(batch.target.sizes(), (std::vector<int64_t>{0, kClasses}));
}

}  // namespace
}  // namespace translution
