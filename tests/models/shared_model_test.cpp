// Several threads that share a model in evaluation mode get the same results as a single thread.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <atomic>
#include <thread>

#include "tests/models/tiny_models.h"
#include "translution/models/generate.h"

namespace translution {
namespace {

// Runs work(thread) on `threads` threads at once; counts those that return false or throw.
template <typename Work>
int count_failures(int threads, const Work& work) {
  std::atomic<int> failed{0}, waiting{threads};
  std::vector<std::thread> workers;
  for (int thread = 0; thread < threads; ++thread)
    workers.emplace_back([&, thread] {
      for (--waiting; waiting > 0;) std::this_thread::yield();
      try {
        if (!work(thread)) ++failed;
      } catch (const std::exception&) {
        ++failed;
      }
    });
  for (auto& thread : workers) thread.join();
  return failed;
}

// Ten generated tokens after a prompt of `prompt` tokens.
std::vector<int64_t> generate(const GPT& model, int64_t prompt) {
  Generator generator(model, {});
  generator.feed(std::vector<int64_t>(prompt, 3));
  std::vector<int64_t> tokens;
  for (int i = 0; i < 10; ++i) tokens.push_back(generator.next());
  return tokens;
}

TEST(SharedModel, ContinuesADifferentTextOnEveryThread) {
  for (const auto& [name, position] : every_method()) {
    auto model = build<GPT>(tiny_gpt(position), torch::kFloat);
    model->eval();
    std::vector<std::vector<int64_t>> expected;
    for (int64_t prompt = 1; prompt <= 4; ++prompt) expected.push_back(generate(model, prompt));
    for (const int threads : {2, 4})
      EXPECT_EQ(count_failures(threads,
                               [&](int t) {
                                 for (int repeat = 0; repeat < 3; ++repeat)
                                   if (generate(model, t + 1) != expected[t]) return false;
                                 return true;
                               }),
                0)
          << name << ", " << threads << " threads";
    EXPECT_FALSE(model->is_training()) << name;
  }
}

TEST(SharedModel, ClassifiesDifferentImagesOnEveryThread) {
  for (const auto& [name, position] : every_method()) {
    auto model = build<ViT>(tiny_vit(position), torch::kFloat);
    model->eval();
    const auto images = random_images(4, torch::kFloat);
    const torch::NoGradGuard no_grad;
    std::vector<at::Tensor> expected;
    for (int n = 0; n < 4; ++n) expected.push_back(model->forward(images.narrow(0, 0, n + 1)));
    for (const int threads : {2, 4})
      EXPECT_EQ(count_failures(threads,
                               [&](int t) {
                                 const torch::NoGradGuard no_grad_here;
                                 for (int repeat = 0; repeat < 10; ++repeat)
                                   if (!torch::equal(model->forward(images.narrow(0, 0, t + 1)),
                                                     expected[t]))
                                     return false;
                                 return true;
                               }),
                0)
          << name << ", " << threads << " threads";
  }
}

}  // namespace
}  // namespace translution
