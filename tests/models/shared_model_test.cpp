// Several threads that share a model in evaluation mode get what each would get alone.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <atomic>
#include <thread>

#include "tests/models/tiny_models.h"
#include "translution/models/generate.h"

namespace translution {
namespace {

// Runs work(thread) on so many threads at once; counts those that return false or throw.
template <typename Work>
int failures(int threads, const Work& work) {
  std::atomic<int> failed{0}, waiting{threads};
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread)
    running.emplace_back([&, thread] {
      for (--waiting; waiting > 0;) std::this_thread::yield();
      try {
        if (!work(thread)) ++failed;
      } catch (const std::exception&) {
        ++failed;
      }
    });
  for (auto& thread : running) thread.join();
  return failed;
}

// A text that begins with so many tokens, ten tokens further.
std::vector<int64_t> continued(const GPT& model, int64_t prompt) {
  Generator generator(model, {});
  generator.feed(std::vector<int64_t>(prompt, 3));
  std::vector<int64_t> tokens;
  for (int i = 0; i < 10; ++i) tokens.push_back(generator.next());
  return tokens;
}

TEST(SharedModel, ContinuesAnotherTextOnEveryThread) {
  for (const auto& [name, position] : every_method()) {
    auto model = build<GPT>(tiny_gpt(position), torch::kFloat);
    model->eval();
    std::vector<std::vector<int64_t>> expected;
    for (int64_t prompt = 1; prompt <= 4; ++prompt) expected.push_back(continued(model, prompt));
    for (const int threads : {2, 4})
      EXPECT_EQ(failures(threads,
                         [&](int t) {
                           for (int again = 0; again < 3; ++again)
                             if (continued(model, t + 1) != expected[t]) return false;
                           return true;
                         }),
                0)
          << name << ", " << threads << " threads";
    EXPECT_FALSE(model->is_training()) << name;
  }
}

TEST(SharedModel, ClassifiesOtherImagesOnEveryThread) {
  for (const auto& [name, position] : every_method()) {
    auto model = build<ViT>(tiny_vit(position), torch::kFloat);
    model->eval();
    const auto images = random_images(4, torch::kFloat);
    const torch::NoGradGuard no_grad;
    std::vector<at::Tensor> expected;
    for (int n = 0; n < 4; ++n) expected.push_back(model->forward(images.narrow(0, 0, n + 1)));
    for (const int threads : {2, 4})
      EXPECT_EQ(
          failures(threads,
                   [&](int t) {
                     const torch::NoGradGuard no_grad_here;
                     for (int again = 0; again < 10; ++again)
                       if (!torch::equal(model->forward(images.narrow(0, 0, t + 1)), expected[t]))
                         return false;
                     return true;
                   }),
          0)
          << name << ", " << threads << " threads";
  }
}

}  // namespace
}  // namespace translution
