// Several threads that share a layer in evaluation mode get the same results as a single thread.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <atomic>
#include <thread>

#include "tests/nn/positions.h"

namespace translution {
namespace {

constexpr int64_t kMaxTokens = 9, kChannels = 6;
constexpr int kRepeats = 20;

Attention shared_layer(const Position& position, Precision precision) {
  torch::manual_seed(kSeed);
  Attention layer(AttentionOptions(kChannels)
                      .heads(3)
                      .dim_head(4)
                      .grid({kMaxTokens})
                      .causal(true)
                      .position(position)
                      .precision(precision));
  layer->eval();
  return layer;
}

// Inputs of every length, with batches of different sizes.
std::vector<at::Tensor> inputs_of_all_lengths() {
  torch::manual_seed(kSeed + 1);
  std::vector<at::Tensor> inputs;
  for (int64_t tokens = 1; tokens <= kMaxTokens; ++tokens)
    inputs.push_back(torch::randn({1 + tokens % 3, tokens, kChannels}));
  return inputs;
}

// The number of wrong results when `threads` threads call the layer at the same time, each
// beginning with another length.
int count_wrong_results(Attention& layer, const std::vector<at::Tensor>& inputs,
                        const std::vector<at::Tensor>& expected, size_t threads) {
  std::atomic<int> wrong{0}, waiting{static_cast<int>(threads)};
  std::vector<std::thread> workers;
  for (size_t thread = 0; thread < threads; ++thread)
    workers.emplace_back([&, thread] {
      const torch::NoGradGuard no_grad;
      for (--waiting; waiting > 0;) std::this_thread::yield();
      for (size_t call = 0; call < kRepeats * inputs.size(); ++call) {
        const size_t n = (call + 2 * thread) % inputs.size();
        try {
          if (!torch::equal(layer->forward(inputs[n]), expected[n])) ++wrong;
        } catch (const std::exception&) {  // cached pairs of another length do not fit
          ++wrong;
        }
      }
    });
  for (auto& thread : workers) thread.join();
  return wrong;
}

void expect_correct_results(Precision precision) {
  const auto inputs = inputs_of_all_lengths();
  for (const auto& [name, position] : every_method()) {
    auto layer = shared_layer(position, precision);
    std::vector<at::Tensor> expected;
    {
      const torch::NoGradGuard no_grad;
      for (const auto& x : inputs) expected.push_back(layer->forward(x));
    }
    for (const size_t threads : {2, 4})
      EXPECT_EQ(count_wrong_results(layer, inputs, expected, threads), 0)
          << name << ", " << threads << " threads";
  }
}

TEST(SharedLayer, GivesEveryThreadItsOwnResult) { expect_correct_results(Precision::float32); }

TEST(SharedLayer, GivesEveryThreadItsOwnResultInBf16) { expect_correct_results(Precision::bf16); }

}  // namespace
}  // namespace translution
