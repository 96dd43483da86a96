// Weights and log are the same for any number of threads.

#include <gmock/gmock.h>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "tests/support/temp_dir.h"

namespace translution {
namespace {

void expect_same_runs(const std::string& arguments, const std::vector<int>& counts) {
  const testing::TempDir directory;
  const auto train = [&](int threads) {
    const std::string path = directory / std::to_string(threads);
    const auto outcome = run("train " + arguments + " --steps 5 --log-every 1 --eval-limit 8 " +
                             "--threads " + std::to_string(threads) + " --out " + path);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return path;
  };
  const auto one = train(1);
  std::printf("%.64s %s\n", weights_of(one).c_str(), arguments.c_str());
  const auto expected = log_of(one);
  EXPECT_GT(expected.size(), 5u);
  for (const int threads : counts) {
    SCOPED_TRACE(threads);
    const auto more = train(threads);
    EXPECT_EQ(weights_of(more), weights_of(one));
    const auto log = log_of(more);
    ASSERT_EQ(log.size(), expected.size());
    for (size_t i = 0; i < log.size(); ++i) EXPECT_EQ(log[i].values, expected[i].values) << i;
  }
}

TEST(ThreadsOfTheProgram, GiveTheSameViT) {
  expect_same_runs(
      "--data digits:64 --canvas 42 --model vit-2x84x2x516/6 --batch 16 "
      "--method alpha_translution --dropout 0.1",
      {2, 3, 8});
}

TEST(ThreadsOfTheProgram, GiveTheSameGPT) {
  const testing::TempDir directory;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "the quick brown fox number " + std::to_string(i) + "\n";
  testing::put_bytes(directory / "fox.txt", text);
  ASSERT_EQ(run("data text " + directory / "fox.txt" + " --out " + directory / "tokens").code, 0);
  expect_same_runs("--data tokens:" + directory / "tokens" +
                       " --model gpt-2x84x2x516-32 --batch 16 --method rotary --gelu tanh",
                   {3});
}

}  // namespace
}  // namespace translution
