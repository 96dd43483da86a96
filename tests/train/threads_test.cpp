// Complete models give the same bits on any number of threads: logits, gradients, and the weights
// after four training steps. The sizes make LibTorch split its own calls by the number of threads:
// 32,768 elements or more, and no multiples of a vector width.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cstdio>

#include "tests/nn/positions.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thread_count.h"
#include "translution/io/safetensors.h"
#include "translution/models/network.h"
#include "translution/ops/runtime.h"
#include "translution/train/adamw.h"
#include "translution/train/evaluate.h"

namespace translution::testing {

using namespace detail;

namespace {

constexpr int64_t kBatch = 16, kSteps = 4;

ModelOptions small_model(Family family, const Position& position) {
  ModelOptions options;
  options.family = family;
  if (family == Family::cloud) options = ModelOptions::of_family(family);
  options.architecture = {"small", 1, 84, 2, 516, 24};
  options.image_size = {20, 20};
  options.patch_size = 4;  // 5x5, and a class token
  options.channels = 3;
  options.classes = 11;
  options.length = 26;
  options.vocabulary = 129;
  options.position = position;
  if (family == Family::cloud) {
    options.axes = 2, options.spacing = 0.5, options.neighbours = 9, options.learn_spacing = true;
    options.position.sharing = Sharing::direction, options.position.radius = 2;
  }
  options.gelu = family == Family::vit ? Gelu::exact : Gelu::tanh;
  options.dropout = 0.1;
  return options;
}

// The results of a training.
struct Trained {
  NamedTensors first;    // logits and gradients of the first step
  NamedTensors weights;  // after the last
  double loss = 0;       // of the last

  std::string sha256() const {
    const TempDir directory;
    save_safetensors(directory / "weights", weights);
    int code = 0;
    const auto sum = output_of_command("sha256sum < " + directory / "weights", &code);
    EXPECT_EQ(code, 0);
    return sum.substr(0, 64);
  }
};

at::Tensor targets_for(const ModelOptions& options, bool shares) {
  if (options.family == Family::gpt)
    return torch::randint(options.vocabulary, {kBatch, options.length}, torch::kLong);
  if (!shares) return torch::randint(options.classes, {kBatch}, torch::kLong);
  return torch::rand({kBatch, options.classes}).softmax(1);  // as mixup gives them
}

Trained train(const ModelOptions& options, int threads, bool shares = false) {
  const ThreadCount count(threads);
  torch::manual_seed(kSeed);
  Network network(options);
  Points points;
  if (options.family == Family::cloud) {
    points.positions = torch::randn({kBatch, 29, 2});
    points.mask = torch::arange(29) < torch::randint(1, 30, {kBatch, 1});
  }
  const auto input =
      options.family == Family::gpt
          ? torch::randint(options.vocabulary, {kBatch, options.length}, torch::kLong)
      : options.family == Family::vit ? torch::randn({kBatch, 3, 20, 20})
                                      : torch::randn({kBatch, 29, 3});
  const auto target = targets_for(options, shares);
  AdamW optimizer(network.module().parameters(), {});
  Trained trained;
  for (int64_t step = 0; step < kSteps; ++step) {
    torch::manual_seed(kSeed + step);
    optimizer.zero_grad();
    const auto logits = network.forward(input, {}, points);
    const auto loss = loss_of(logits, target, {0.1});
    trained.loss = loss.item<double>();
    loss.backward();
    if (step == 0) {
      trained.first["logits"] = logits.detach();
      for (const auto& item : network.module().named_parameters())
        if (item.value().grad().defined()) trained.first[item.key()] = item.value().grad().clone();
    }
    optimizer.step(/*clip=*/0.5);
  }
  for (const auto& item : network.module().named_parameters())
    trained.weights[item.key()] = item.value().detach().clone();
  return trained;
}

void expect_same(const NamedTensors& got, const NamedTensors& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, tensor] : got)
    EXPECT_TRUE(same_bits(tensor, expected.at(name))) << what << " " << name;
}

class Threads : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runtime().fused())
      GTEST_SKIP() << "the portable implementation does not guarantee the same bits";
  }

  // Compares trainings on 1, 2, 3 and 8 threads.
  static void expect_same_bits(const std::string& name, const ModelOptions& options,
                               bool shares = false) {
    SCOPED_TRACE(name);
    const auto one = train(options, 1, shares);
    const auto sum = one.sha256();
    std::printf("%s %s\n", sum.c_str(), name.c_str());
    for (const int threads : {2, 3, 8}) {
      SCOPED_TRACE(join(threads, " threads"));
      const auto more = train(options, threads, shares);
      expect_same(more.first, one.first, "first step:");
      expect_same(more.weights, one.weights, "trained:");
      EXPECT_EQ(more.loss, one.loss);
      EXPECT_EQ(more.sha256(), sum);
    }
  }
};

TEST_F(Threads, GiveTheSameViT) {
  for (const auto& [name, position] : every_method())
    expect_same_bits("vit " + name, small_model(Family::vit, position));
}

TEST_F(Threads, GiveTheSameGPT) {
  for (const auto& [name, position] : every_method())
    expect_same_bits("gpt " + name, small_model(Family::gpt, position));
}

// One of each kind: coordinates as input, vectors, a number, small and large matrices per offset.
TEST_F(Threads, GiveTheSameCloud) {
  constexpr Method kKinds[] = {Method::self_attention, Method::relative_key, Method::relative_bias,
                               Method::alpha_translution};
  Position position;
  for (const auto method : kKinds) {
    position.method = method;
    expect_same_bits(join("cloud ", name_of(kMethods, method)),
                     small_model(Family::cloud, position));
  }
  position.method = Method::translution;
  auto mean = small_model(Family::cloud, position);
  mean.pooling = Pooling::mean, mean.input_embedding = true, mean.classes = 5;
  mean.coordinates = Coordinates::centred, mean.precision = Precision::bf16;
  expect_same_bits("cloud mean bf16 translution", mean);
}

ModelOptions in_bf16(ModelOptions options) {
  options.precision = Precision::bf16;
  return options;
}

TEST_F(Threads, GiveTheSameViTInBf16) {
  if (!runtime().fused())
    GTEST_SKIP() << "the portable implementation does not guarantee the same bits";
  for (const auto& [name, position] : every_method())
    expect_same_bits("vit bf16 " + name, in_bf16(small_model(Family::vit, position)));
}

TEST_F(Threads, GiveTheSameGPTInBf16) {
  if (!runtime().fused())
    GTEST_SKIP() << "the portable implementation does not guarantee the same bits";
  for (const auto& [name, position] : every_method())
    expect_same_bits("gpt bf16 " + name, in_bf16(small_model(Family::gpt, position)));
}

// Without a class token, with biases, a position embedding and mixed targets.
TEST_F(Threads, GiveTheSameViTWithOtherOptions) {
  auto options = small_model(Family::vit, {});
  options.position.method = Method::self_attention;
  options.pooling = Pooling::mean;
  options.qkv_bias = true;
  options.gelu = Gelu::tanh;
  options.input_embedding = true;
  expect_same_bits("vit mean", options, /*shares=*/true);
}

}  // namespace
}  // namespace translution::testing
