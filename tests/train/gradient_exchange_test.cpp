// Sums of gradients during backward: what is summed, when, and what happens to errors. The other
// processes are played by a function; tests/apps/distributed_test.cpp has real ones.
#include "translution/train/gradient_exchange.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "tests/models/tiny_models.h"
#include "translution/models/network.h"
#include "translution/nn/generator.h"
#include "translution/train/step.h"

namespace translution {
namespace {

using Tensors = std::vector<torch::Tensor>;

constexpr int64_t kBucket = 100;  // floats

struct Task {
  Network network{tiny_vit()};
  Batch batch = random_batch(tiny_vit(), 4, seeded_generator(kSeed));
  Tensors parameters = network.module().parameters();

  void backward(const StepOptions& options = {}, const std::function<void(int64_t)>& done = {}) {
    add_gradients(network, batch, 4, options, {}, done);
  }
  Tensors gradients() const {
    Tensors all;
    for (const auto& parameter : parameters) all.push_back(parameter.grad().clone());
    return all;
  }
};

void expect_equal(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t p = 0; p < a.size(); ++p) EXPECT_TRUE(at::equal(a[p], b[p])) << p;
}

int64_t count_of(const Tensors& tensors) {
  int64_t count = 0;
  for (const auto& tensor : tensors) count += tensor.numel();
  return count;
}

TEST(GradientExchange, SumsEveryElementOnceInBucketsFromTheLastOn) {
  Task task;
  task.backward();
  const auto expected = task.gradients();
  for (auto& parameter : task.parameters) parameter.mutable_grad().reset();
  std::vector<int64_t> counts;
  GradientExchange exchange(
      task.parameters,
      [&](const Tensors& tensors) {
        counts.push_back(count_of(tensors));
        for (auto tensor : tensors) tensor.mul_(2);
      },
      kBucket);
  for (int step = 0; step < 2; ++step) {
    exchange.start();
    task.backward();
    exchange.finish();
    for (size_t p = 0; p < expected.size(); ++p)
      EXPECT_TRUE(at::equal(task.parameters[p].grad(), 2 * expected[p])) << p;
    const int64_t all = count_of(task.parameters);
    ASSERT_EQ(counts.size(), static_cast<size_t>((all + kBucket - 1) / kBucket + 1));
    EXPECT_EQ(counts.front(), all % kBucket);  // the last bucket
    EXPECT_EQ(counts[1], kBucket);
    EXPECT_EQ(counts.back(), static_cast<int64_t>(expected.size()));  // who has which gradient
    counts.clear();
    for (auto& parameter : task.parameters) parameter.mutable_grad().reset();
  }
}

// Backward waits between the two blocks until the sum of a bucket has begun.
TEST(GradientExchange, BeginsBeforeBackwardEnds) {
  Task task;
  std::atomic<bool> begun{false};
  GradientExchange exchange(
      task.parameters, [&](const Tensors&) { begun = true; }, kBucket);
  int64_t calls = 0;  // three in forward, then behind the last block, between the blocks, before
  bool in_time = false;
  task.network.backbone()->between_blocks = [&] {
    if (++calls != 5) return;
    for (int i = 0; i < 10000 && !begun; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    in_time = begun;
  };
  exchange.start();
  task.backward();
  exchange.finish();
  EXPECT_EQ(calls, 6);
  EXPECT_TRUE(in_time);
  EXPECT_GT(exchange.early(), 0);
}

TEST(GradientExchange, OfABatchInPartsSumsWhatAllPartsHaveAdded) {
  Task task;
  task.backward({/*parts=*/3});
  const auto expected = task.gradients();
  for (auto& parameter : task.parameters) parameter.mutable_grad().reset();
  GradientExchange exchange(
      task.parameters, [](const Tensors&) {}, kBucket);
  task.backward({/*parts=*/3}, [&](int64_t parts) {
    if (parts == 2) exchange.start();
  });
  exchange.finish();
  expect_equal(task.gradients(), expected);
}

// As if another process had a gradient of ones for every parameter but the last one.
TEST(GradientExchange, AMissingGradientIsZerosIfAnotherProcessHasIt) {
  Tensors parameters;
  for (int p = 0; p < 3; ++p) parameters.push_back(torch::zeros({2}).requires_grad_());
  GradientExchange exchange(
      parameters,
      [](const Tensors& tensors) {
        if (tensors.size() == 1 && tensors[0].numel() == 3) tensors[0].narrow(0, 0, 2).add_(1);
        for (auto tensor : tensors)
          if (tensor.numel() == 2) tensor.add_(1);
      },
      /*bucket=*/2);
  exchange.start();
  (2 * parameters[0]).sum().backward();
  exchange.finish();
  EXPECT_TRUE(at::equal(parameters[0].grad(), torch::full({2}, 3.0)));
  EXPECT_TRUE(at::equal(parameters[1].grad(), torch::ones({2})));
  EXPECT_FALSE(parameters[2].grad().defined());
}

TEST(GradientExchange, AStepThatWasInterruptedSendsItsBuckets) {
  Task task;
  int64_t count = 0;
  GradientExchange exchange(
      task.parameters, [&](const Tensors& tensors) { count += count_of(tensors); }, kBucket);
  exchange.finish();
  const auto all = static_cast<int64_t>(task.parameters.size());
  EXPECT_EQ(count, count_of(task.parameters) + all);
  EXPECT_FALSE(task.parameters.front().grad().defined());
}

TEST(GradientExchange, ThrowsTheErrorOfASum) {
  Task task;
  GradientExchange exchange(
      task.parameters, [](const Tensors&) { throw std::runtime_error("rank 7 is lost"); }, kBucket);
  exchange.start();
  task.backward();
  try {
    exchange.finish();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "rank 7 is lost");
  }
}

TEST(GradientExchange, IsAbandonedAfterAnErrorInBackward) {
  Task task;
  int64_t sums = 0;
  {
    GradientExchange exchange(
        task.parameters, [&](const Tensors&) { ++sums; }, kBucket);
    exchange.start();
  }
  EXPECT_EQ(sums, 0);
  task.backward();  // the hooks are gone
}

}  // namespace
}  // namespace translution
