#include "translution/data/loader.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>

#include "tests/support/thread_count.h"
#include "translution/core/random.h"
#include "translution/ops/parallel.h"

namespace translution {
namespace {

using ::testing::ElementsAre;

// Batches that encode their plan. A random delay varies the order in which workers finish.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t size, int64_t bad_sample = -1) : size_(size), bad_sample_(bad_sample) {}
  int64_t size() const override { return size_; }
  Batch load(const BatchPlan& plan) const override {
    ++loads;
    Random random({static_cast<uint64_t>(plan.epoch), static_cast<uint64_t>(plan.index)});
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(300)));
    for (const int64_t sample : plan.samples)
      if (sample == bad_sample_) throw std::runtime_error("bad sample");
    const auto samples = torch::tensor(plan.samples);
    return {samples.to(torch::kDouble) + random.uniform(), samples * 1000 + plan.epoch};
  }

  mutable std::atomic<int64_t> loads{0};

 private:
  const int64_t size_, bad_sample_;
};

LoaderOptions with(const BatchOrderOptions& order, int64_t workers, int64_t prefetch = 4) {
  return {order, workers, prefetch};
}

// The next `count` batches, or fewer at the end of a single epoch.
std::vector<LoadedBatch> take(Loader& loader, int64_t count) {
  std::vector<LoadedBatch> batches;
  while (count-- > 0) {
    auto batch = loader.next();
    if (!batch) break;
    batches.push_back(std::move(*batch));
  }
  return batches;
}

std::vector<LoadedBatch> take(int64_t size, const LoaderOptions& options, int64_t count) {
  Loader loader(std::make_shared<Numbers>(size), options);
  return take(loader, count);
}

void expect_same(const std::vector<LoadedBatch>& a, const std::vector<LoadedBatch>& b,
                 size_t skipped = 0) {
  ASSERT_EQ(a.size(), b.size() + skipped);
  for (size_t i = 0; i < b.size(); ++i) {
    const auto &x = a[i + skipped], &y = b[i];
    EXPECT_EQ(x.plan.epoch, y.plan.epoch);
    EXPECT_EQ(x.plan.index, y.plan.index);
    EXPECT_EQ(x.plan.samples, y.plan.samples);
    EXPECT_TRUE(torch::equal(x.batch.input, y.batch.input));
    EXPECT_TRUE(torch::equal(x.batch.target, y.batch.target));
  }
}

TEST(Loader, GivesTheSameBitsForAnyNumberOfWorkers) {
  for (const auto& order : {training_order(7, 5), evaluation_order(7)}) {
    const auto alone = take(100, with(order, 0), 50);
    expect_same(alone, take(100, with(order, 1), 50));
    expect_same(alone, take(100, with(order, 3), 50));
    expect_same(alone, take(100, with(order, 3, 1), 50));
    expect_same(alone, take(100, with(order, 2, 9), 50));
  }
}

TEST(Loader, ResumesAtAnyBatch) {
  const auto all = take(30, with(training_order(4, 5), 0), 21);  // 3 epochs of 7 batches
  for (int64_t skipped = 0; skipped < 21; ++skipped) {
    const auto order = training_order(4, 5, skipped / 7, skipped % 7);
    expect_same(all, take(30, with(order, skipped % 4), 21 - skipped), skipped);
  }
  const auto next_epoch = take(30, with(training_order(4, 5, 0, 7), 1), 14);
  expect_same(all, next_epoch, 7);
}

TEST(Loader, ResumesInTheMiddleOfAnEvaluation) {
  auto order = evaluation_order(4);
  const auto all = take(10, with(order, 0), 9);
  order.index = 2;
  expect_same(all, take(10, with(order, 2), 9), 2);
  order.index = 3;
  EXPECT_TRUE(take(10, with(order, 2), 9).empty());
}

TEST(Loader, ATrainingEpochHasNoSampleTwiceAndDropsThePartialBatch) {
  const auto batches = take(30, with(training_order(4, 5), 1), 14);
  for (const size_t epoch : {0, 1}) {
    std::set<int64_t> seen;
    for (size_t i = 0; i < 7; ++i) {
      const auto& plan = batches[epoch * 7 + i].plan;
      EXPECT_EQ(plan.epoch, static_cast<int64_t>(epoch));
      EXPECT_EQ(plan.index, static_cast<int64_t>(i));
      seen.insert(plan.samples.begin(), plan.samples.end());
    }
    EXPECT_EQ(seen.size(), 28u);
  }
  EXPECT_NE(batches[0].plan.samples, batches[7].plan.samples) << "every epoch has its own order";
}

TEST(Loader, TheOrderDependsOnTheSeed) {
  EXPECT_NE(take(30, with(training_order(8, 5), 0), 1)[0].plan.samples,
            take(30, with(training_order(8, 6), 0), 1)[0].plan.samples);
}

TEST(Loader, WithoutShufflingSamplesAreInAscendingOrder) {
  auto order = training_order(2, 5);
  order.shuffle = false;
  const auto batches = take(5, with(order, 2), 3);
  EXPECT_THAT(batches[1].plan.samples, ElementsAre(2, 3));
  EXPECT_THAT(batches[2].plan.samples, ElementsAre(0, 1));
  EXPECT_EQ(batches[2].plan.epoch, 1);
}

TEST(Loader, EvaluationIsOnePassInOrderWithASmallerLastBatch) {
  for (const int64_t workers : {0, 2}) {
    Loader loader(std::make_shared<Numbers>(10), with(evaluation_order(4), workers));
    EXPECT_EQ(loader.batches_per_epoch(), 3);
    const auto batches = take(loader, 5);
    ASSERT_EQ(batches.size(), 3u);
    EXPECT_THAT(batches[0].plan.samples, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(batches[2].plan.samples, ElementsAre(8, 9));
    EXPECT_FALSE(loader.next().has_value()) << "the loader stays at the end";
  }
}

TEST(Loader, ShardsOfABatchAreItsSamplesInOrder) {
  auto order = training_order(7, 5);
  const auto whole = take(30, with(order, 1), 3);
  std::vector<std::vector<int64_t>> joined(3);
  for (const int64_t process : {0, 1}) {
    order.shards = {4, 2 * process, 2};
    const auto shards = take(30, with(order, 2), 6);
    for (size_t i = 0; i < shards.size(); ++i) {
      const auto& plan = shards[i].plan;
      EXPECT_EQ(plan.index, static_cast<int64_t>(i / 2));
      EXPECT_EQ(plan.shard, 2 * process + static_cast<int64_t>(i % 2));
      joined[i / 2].insert(joined[i / 2].end(), plan.samples.begin(), plan.samples.end());
    }
  }
  for (size_t i = 0; i < joined.size(); ++i) EXPECT_EQ(joined[i], whole[i].plan.samples);
}

TEST(Loader, EvaluationMayTakeEveryOtherBatch) {
  auto order = evaluation_order(4);
  order.index = 1, order.every = 2;
  const auto batches = take(18, with(order, 1), 5);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_THAT(batches[0].plan.samples, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(batches[1].plan.samples, ElementsAre(12, 13, 14, 15));
}

TEST(Loader, ASetSmallerThanABatchIsOneBatch) {
  const auto training = take(3, with(training_order(8, 1), 1), 2);
  EXPECT_THAT(training[0].plan.samples, ::testing::UnorderedElementsAre(0, 1, 2));
  EXPECT_EQ(training[1].plan.epoch, 1);
  EXPECT_EQ(take(3, with(evaluation_order(8), 1), 5).size(), 1u);
}

TEST(Loader, RethrowsInTheCallersThreadAndContinuesAfterTheFailure) {
  for (const int64_t workers : {0, 1, 3}) {
    Loader loader(std::make_shared<Numbers>(12, /*bad_sample=*/5),
                  with(evaluation_order(2), workers));
    EXPECT_EQ(take(loader, 2).size(), 2u);
    EXPECT_THROW(loader.next(), std::runtime_error);
    const auto rest = take(loader, 9);
    ASSERT_EQ(rest.size(), 3u);
    EXPECT_THAT(rest[0].plan.samples, ElementsAre(6, 7));
  }
}

TEST(Loader, LoadsNoFurtherAheadThanPrefetch) {
  const auto set = std::make_shared<Numbers>(1000);
  Loader loader(set, with(training_order(2, 1), /*workers=*/2, /*prefetch=*/3));
  take(loader, 5);
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(10)); };
  for (int i = 0; i < 1000 && set->loads < 8; ++i) wait();
  wait();
  EXPECT_EQ(set->loads, 8) << "five taken, three ahead";
}

TEST(Loader, EndsAtOnceAtAnyMoment) {
  const auto set = std::make_shared<Numbers>(1000);
  const auto start = std::chrono::steady_clock::now();
  for (int64_t round = 0; round < 200; ++round) {
    Loader loader(set, with(training_order(2, 1), round % 5, 1 + round % 7));
    take(loader, round % 4);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_LT(taken.count(), 5);
}

// Batches that hold the number of threads that Torch and our kernels would use.
class Threads : public Dataset {
 public:
  int64_t size() const override { return 4; }
  Batch load(const BatchPlan&) const override {
    return {torch::full({1}, at::get_num_threads()), torch::full({1}, team_size())};
  }
};

TEST(Loader, WorkersRunTorchAndOurKernelsOnOneThreadButNotTheCaller) {
  const ThreadCount threads(2);
  Loader loader(std::make_shared<Threads>(), with(evaluation_order(1), 2));
  for (const auto& loaded : take(loader, 4)) {
    EXPECT_EQ(loaded.batch.input.item<int64_t>(), 1);
    EXPECT_EQ(loaded.batch.target.item<int64_t>(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 2);
  EXPECT_EQ(team_size(), 2);
}

TEST(Loader, RefusesInvalidOptions) {
  const auto refused = [](int64_t size, const LoaderOptions& options) {
    EXPECT_THROW(Loader(std::make_shared<Numbers>(size), options), std::invalid_argument);
  };
  refused(0, with(training_order(4, 1), 1));
  refused(10, with(training_order(0, 1), 1));
  auto shards = training_order(4, 1);
  shards.shards.all = 5;  // of 4 samples
  refused(10, with(shards, 1));
  refused(10, with(training_order(4, 1), -1));
  refused(10, with(training_order(4, 1), 1, 0));
  refused(10, with(training_order(4, 1, 0, 3), 1));
  refused(10, with(training_order(4, 1, -1, 0), 1));
  refused(10, with(training_order(4, 1, 0, -1), 1));
}

}  // namespace
}  // namespace translution
