// Ten steps of training give the recorded losses, for every method in a ViT and in a GPT. In double
// they do not depend on threads, workspace or implementation.
//
// tests/golden/loss_curves.txt holds the losses in double, a line "model<TAB>method<TAB>losses" for
// each curve. TRANSLUTION_LOSS_CURVE_FILE=path writes such a file, for changes that are meant to
// change what is learned.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <map>
#include <sstream>

#include "tests/nn/positions.h"
#include "tests/support/filled.h"
#include "tests/support/portable_only.h"
#include "tests/support/thread_count.h"
#include "translution/models/network.h"
#include "translution/nn/block.h"
#include "translution/ops/cross_entropy.h"
#include "translution/ops/runtime.h"
#include "translution/train/adamw.h"

namespace translution::testing {
namespace {

constexpr int64_t kBatch = 17, kSteps = 10;
constexpr int64_t kSaveAll = int64_t{1} << 40, kSaveNothing = 0;  // workspaces

using Curve = std::vector<double>;
using Curves = std::map<std::string, Curve>;  // by model and method

// Type, workspace and precision of a training.
struct TrainingSetup {
  at::ScalarType type = at::kDouble;
  int64_t workspace = kSaveAll;
  Precision precision = Precision::float32;
};

// Encodings of Translution are wide enough to be saved; those of alpha are narrow enough to have
// the batch as the innermost dimension. 75 and 101 are not multiples of a vector.
ModelOptions small_model(Family family, const Position& position) {
  ModelOptions options;
  options.family = family;
  options.architecture = {"small", 2, 75, 3, 101, 20};
  options.image_size = {6, 9};
  options.patch_size = 3;  // 2x3, and a class token
  options.channels = 2;
  options.classes = 7;
  options.length = 11;
  options.vocabulary = 29;
  options.position = position;
  return options;
}

// Gives every layer an attention with this workspace.
void set_workspace(torch::nn::Module& network, int64_t workspace) {
  for (const auto& module : network.modules())
    if (auto* const block = module->as<BlockImpl>())
      block->attention = block->replace_module(
          "attention", Attention(AttentionOptions(block->attention->options).workspace(workspace)));
}

// Integers from 0 to count - 1.
at::Tensor filled_classes(const std::string& name, at::IntArrayRef shape, int64_t count) {
  const double half = static_cast<double>(count) / 2;
  return (filled(name, shape, half) + half).floor().to(at::kLong);
}

struct Batch {
  at::Tensor input;   // images [B,2,6,9] or tokens [B,n]
  at::Tensor target;  // a class for each row of logits
};

Batch batch_for(const ModelOptions& o, at::ScalarType type) {
  if (o.family == Family::gpt)
    return {filled_classes("tokens", {kBatch, o.length}, o.vocabulary),
            filled_classes("next tokens", {kBatch * o.length}, o.vocabulary)};
  return {filled("images", {kBatch, o.channels, o.image_size[0], o.image_size[1]}, 1.7).to(type),
          filled_classes("classes", {kBatch}, o.classes)};
}

// The losses of ten steps on one batch.
Curve train(ModelOptions options, const TrainingSetup& setup) {
  options.precision = setup.precision;
  Network network(options);
  set_workspace(network.module(), setup.workspace);
  network.module().to(setup.type);
  fill_parameters(network.module());
  const auto [input, target] = batch_for(options, setup.type);
  AdamWOptions adamw;
  adamw.lr = 1e-3;
  adamw.weight_decay = 0.1;
  AdamW optimizer(network.module().parameters(), adamw);
  Curve losses;
  for (int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const auto loss = cross_entropy(network.forward(input).flatten(0, -2), target);
    losses.push_back(loss.item<double>());
    loss.backward();
    optimizer.step(/*clip=*/1.0);
  }
  return losses;
}

Curves train_all(const TrainingSetup& setup = {}) {
  Curves curves;
  for (const auto& [name, position] : every_method()) {
    curves["vit\t" + name] = train(small_model(Family::vit, position), setup);
    curves["gpt\t" + name] = train(small_model(Family::gpt, position), setup);
  }
  return curves;
}

// In double, on one thread, with saved encodings.
const Curves& reference_curves() {
  static const Curves curves = [] {
    const ThreadCount one(1);
    return train_all();
  }();
  return curves;
}

// True if the portable implementation is used everywhere.
bool runs_portable() { return !runtime().fused(); }

// The losses of the portable implementation.
Curves portable_curves() {
  const PortableOnly portable;
  return train_all();
}

// Expects every loss to differ by at most `tolerance` times its value.
void expect_near(const Curves& curves, const Curves& expected, double tolerance) {
  ASSERT_EQ(curves.size(), expected.size());
  for (const auto& [name, losses] : expected)
    for (int64_t step = 0; step < kSteps; ++step) {
      const double loss = losses.at(step);
      EXPECT_LE(std::abs(curves.at(name).at(step) - loss), tolerance * loss)
          << name << ", step " << step;
    }
}

void expect_same(const Curves& curves, const Curves& expected) { expect_near(curves, expected, 0); }

TEST(LossCurves, Fall) {
  for (const auto& [name, losses] : reference_curves())
    EXPECT_LT(losses.back(), 0.7 * losses.front()) << name;
}

TEST(LossCurves, AreTheSameBitsOnAnyNumberOfThreads) {
  if (runs_portable()) GTEST_SKIP() << "not guaranteed by LibTorch's matrix products";
  for (const int threads : {2, 3, 8}) {
    const ThreadCount count(threads);
    SCOPED_TRACE(threads);
    expect_same(train_all(), reference_curves());
  }
}

TEST(LossCurves, AreTheSameBitsWhetherEncodingsAreSavedOrRecomputed) {
  expect_same(train_all({at::kDouble, kSaveNothing}), reference_curves());
}

// The largest measured difference over all instruction sets is 4e-15.
TEST(LossCurves, OfThePortableImplementationAgreeToRounding) {
  expect_near(portable_curves(), reference_curves(), 1e-12);
}

// The largest measured difference over all instruction sets is 2.4e-5.
TEST(LossCurves, InFloatAgreeWithThoseInDoubleToRounding) {
  expect_near(train_all({at::kFloat}), reference_curves(), 1e-4);
}

Curves bf16_curves(int64_t workspace = kSaveAll) {
  return train_all({at::kFloat, workspace, Precision::bf16});
}

// The tolerance is 1 % of the loss, or of a tenth of the first loss if that is larger. The largest
// measured difference is 0.72 %.
void expect_near_in_bf16(const Curves& curves) {
  for (const auto& [name, losses] : reference_curves())
    for (int64_t step = 0; step < kSteps; ++step) {
      const double size = std::max(losses.at(step), losses.front() / 10);
      EXPECT_LE(std::abs(curves.at(name).at(step) - losses.at(step)), 0.01 * size)
          << name << ", step " << step;
    }
}

TEST(LossCurves, InBf16AreNearThoseInFloat) { expect_near_in_bf16(bf16_curves()); }

TEST(LossCurves, InBf16OfThePortableImplementationAreNear) {
  const PortableOnly portable;
  expect_near_in_bf16(bf16_curves());
}

TEST(LossCurves, InBf16AreTheSameBitsWithAnyThreadsAndWorkspace) {
  if (!runtime().fused()) GTEST_SKIP() << "not guaranteed by LibTorch's matrix products";
  const auto expected = bf16_curves();
  expect_same(bf16_curves(kSaveNothing), expected);
  for (const int threads : {1, 2, 3, 8}) {
    const ThreadCount count(threads);
    SCOPED_TRACE(threads);
    expect_same(bf16_curves(), expected);
  }
}

TEST(LossCurves, AreWrittenOnRequest) {
  const char* path = std::getenv("TRANSLUTION_LOSS_CURVE_FILE");
  if (path == nullptr) GTEST_SKIP() << "TRANSLUTION_LOSS_CURVE_FILE is not set";
  std::ofstream file(path);
  file << std::setprecision(17);
  for (const auto& [name, losses] : reference_curves()) {
    file << name << '\t' << losses.front();
    for (size_t step = 1; step < losses.size(); ++step) file << ' ' << losses[step];
    file << '\n';
  }
  ASSERT_TRUE(file.flush()) << "cannot write " << path;
}

Curves read_curves(const std::string& path) {
  std::ifstream file(path);
  Curves curves;
  for (std::string line; std::getline(file, line);) {
    const size_t end = line.rfind('\t');
    std::istringstream losses(line.substr(end + 1));
    for (double loss; losses >> loss;) curves[line.substr(0, end)].push_back(loss);
  }
  return curves;
}

// The order of sums differs between processors and libraries; instruction sets differ by up to
// 5e-15.
TEST(LossCurves, AreThoseOfTheGoldenFile) {
  expect_near(reference_curves(), read_curves(TRANSLUTION_GOLDEN "/loss_curves.txt"), 1e-10);
}

}  // namespace
}  // namespace translution::testing
