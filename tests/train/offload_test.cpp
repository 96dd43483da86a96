// A step with weights and moments in files is train_step, bit for bit.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/models/tiny_models.h"
#include "tests/support/peak_memory.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thread_count.h"
#include "translution/models/cost.h"
#include "translution/nn/generator.h"
#include "translution/train/offload_mark.h"
#include "translution/train/offload_step.h"

namespace translution::testing {
namespace {

constexpr int64_t kSamples = 7, kSteps = 2;

Batch batch_of(const ModelOptions& model, int64_t step) {
  return random_batch(model, kSamples, seeded_generator(static_cast<uint64_t>(100 + step)));
}

at::Generator dropout_of(int64_t step) {
  return seeded_generator(static_cast<uint64_t>(200 + step));
}

struct Result {
  std::vector<StepOutcome> outcomes;
  std::vector<torch::Tensor> tensors;  // weights and moments
};

Result result_of(Network& network, const AdamW& optimizer, std::vector<StepOutcome> outcomes) {
  Result result{std::move(outcomes), {}};
  for (const auto& parameter : network.module().parameters())
    result.tensors.push_back(parameter.detach().clone());
  for (const auto& moments : {optimizer.state.first, optimizer.state.second})
    for (const auto& moment : moments) result.tensors.push_back(moment.clone());
  return result;
}

// Steps of train_step.
Result in_memory(const ModelOptions& model, StepOptions options) {
  Network network(model, seeded_generator(kSeed));
  AdamW optimizer(network.module().parameters(), {});
  std::vector<StepOutcome> outcomes;
  for (int64_t step = 0; step < kSteps; ++step) {
    outcomes.push_back(
        train_step(network, optimizer, batch_of(model, step), options, dropout_of(step)));
    options.last_norm = outcomes.back().norm;
  }
  return result_of(network, optimizer, outcomes);
}

// A network and an optimizer in files.
struct Learner {
  Learner(const ModelOptions& model, const std::string& directory)
      : offload(directory, model),
        network(offload.build(seeded_generator(kSeed))),
        optimizer(network.module().parameters(), {}, AdamW::Memory::lean) {
    offload.attach(optimizer.state);
  }
  StepOutcome step(int64_t number, const StepOptions& options, const Batch& batch) {
    return offload_step({network, optimizer, offload, number}, batch, options, dropout_of(number));
  }

  Offload offload;
  Network network;
  AdamW optimizer;
};

Result in_files(const ModelOptions& model, StepOptions options) {
  const TempDir directory;
  Learner learner(model, directory.path());
  std::vector<StepOutcome> outcomes;
  for (int64_t step = 0; step < kSteps; ++step) {
    outcomes.push_back(learner.step(step, options, batch_of(model, step)));
    options.last_norm = outcomes.back().norm;
  }
  return result_of(learner.network, learner.optimizer, outcomes);
}

// The norms are sums in other orders unless both are by layer.
void expect_same(const Result& a, const Result& b, bool same_norms) {
  for (size_t step = 0; step < a.outcomes.size(); ++step) {
    EXPECT_EQ(a.outcomes[step].loss, b.outcomes[step].loss);
    const double norm = a.outcomes[step].norm;
    EXPECT_NEAR(norm, b.outcomes[step].norm, same_norms ? 0 : 1e-12 * norm);
  }
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t t = 0; t < a.tensors.size(); ++t)
    EXPECT_TRUE(torch::equal(a.tensors[t], b.tensors[t])) << "tensor " << t;
}

TEST(OffloadStep, IsTheStepInMemoryForEveryMethodAndInParts) {
  for (const auto& [name, position] : every_method()) {
    int64_t parts = 0;
    for (const auto& model :
         {tiny_vit(position), tiny_vit(position, Pooling::mean), tiny_gpt(position)}) {
      SCOPED_TRACE(name + " " + model.name() + ", parts " + std::to_string(++parts));
      const StepOptions options{parts, 0.1, 0.01, ClipBy::layer};
      expect_same(in_memory(model, options), in_files(model, options), true);
    }
  }
}

TEST(OffloadStep, IsTheStepInMemoryWithDropoutAndInBf16) {
  for (auto model : {tiny_vit(), tiny_gpt()}) {
    model.dropout = 0.3;
    model.architecture.dim = 32, model.architecture.heads = 1, model.architecture.dim_head = 32;
    for (const auto precision : {Precision::float32, Precision::bf16}) {
      model.precision = precision;
      SCOPED_TRACE(model.name() + " " + name_of(kPrecisions, precision));
      const StepOptions options{2, 0, 0.01, ClipBy::layer};
      expect_same(in_memory(model, options), in_files(model, options), true);
    }
  }
}

TEST(OffloadStep, ClipsByTheNormOfTheLastStepOrNotAtAll) {
  const auto model = tiny_vit();
  const StepOptions by_last{2, 0, 0.01, ClipBy::last}, unclipped{2, 0, 0};
  expect_same(in_memory(model, by_last), in_files(model, by_last), true);
  expect_same(in_memory(model, unclipped), in_files(model, unclipped), false);
  EXPECT_FALSE(torch::equal(in_files(model, by_last).tensors.back(),
                            in_files(model, unclipped).tensors.back()));
}

TEST(OffloadStep, HasTheSameBitsForAnyNumberOfThreads) {
  const auto model = tiny_gpt();
  const StepOptions options{2, 0, 0.01, ClipBy::layer};
  const auto run = [&](int threads) {
    const ThreadCount count(threads);
    return in_files(model, options);
  };
  const auto one = run(1);
  for (const int threads : {2, 3, 8}) expect_same(one, run(threads), true);
}

// The head computes the loss before any weight changes.
TEST(OffloadStep, ChangesNothingIfTheLossIsNotFinite) {
  const TempDir directory;
  const auto model = tiny_vit();
  Learner learner(model, directory.path());
  learner.offload.whole_after(4);
  const auto before = result_of(learner.network, learner.optimizer, {});
  auto batch = batch_of(model, 0);
  batch.input[3].fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_FALSE(std::isfinite(learner.step(4, {2}, batch).loss));
  expect_same(before, result_of(learner.network, learner.optimizer, {}), true);
  EXPECT_FALSE(read_offload_mark(directory.path()).updating);
}

// Three layers of 59 MB of weights each, 528 MB with moments.
TEST(OffloadStep, TakesNoMoreMemoryThanCounted) {
  ModelOptions model;
  model.architecture = {"patches", 3, 96, 2, 96, 48};
  model.image_size = {24, 24};
  model.patch_size = 2;
  model.channels = 1;
  model.classes = 3;
  for (const int64_t parts : {1, 2}) {
    const TempDir directory;
    Learner learner(model, directory.path());
    const auto batch = random_batch(model, 2);
    learner.step(0, {parts}, batch);  // libraries load code and start threads
    const double growth = peak_growth([&] { learner.step(1, {parts}, batch); });
    if (growth < 0) GTEST_SKIP() << "/proc does not report the peak memory";
    const double counted = offload_bytes(model, 2, 2 / parts) / kMegabyte;
    std::printf("%d parts: grew by %.0f MB at most, counted %.0f MB\n", static_cast<int>(parts),
                growth, counted);
    EXPECT_LE(growth, 1.13 * counted);
    EXPECT_LT(counted, 0.6 * 3 * model_cost(model).weight_bytes / kMegabyte);
  }
}

// A stop between the first and the last update is visible in the mark.
TEST(OffloadStep, MarksAnUpdateThatDoesNotEnd) {
  const TempDir directory;
  const auto model = tiny_vit();
  Learner learner(model, directory.path());
  learner.offload.whole_after(0);
  learner.step(0, {}, batch_of(model, 0));
  const auto whole = read_offload_mark(directory.path());
  EXPECT_EQ(whole.step, 1);
  EXPECT_FALSE(whole.updating);

  // The embedding is the last layer that is updated.
  learner.network.vit()->cls_token.register_hook(
      [](const torch::Tensor&) { throw std::runtime_error("stopped"); });
  EXPECT_ANY_THROW(learner.step(1, {}, batch_of(model, 1)));
  const auto interrupted = read_offload_mark(directory.path());
  EXPECT_EQ(interrupted.step, 1);
  EXPECT_TRUE(interrupted.updating);
}

}  // namespace
}  // namespace translution::testing
