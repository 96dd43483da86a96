// The option --device.

#include <ATen/Context.h>
#include <gmock/gmock.h>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "translution/io/file.h"
#include "translution/train/checkpoint.h"

namespace translution {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using DeviceOption = SmallRun;

const std::vector<std::string> kComputing = {
    "train --data digits:64 --canvas 42 --model vit-tiny/21 --steps 1 --out /no/such/run",
    "eval /no/such/run",
    "predict /no/such/run x.png",
    "generate /no/such/run",
    "report /no/such/run",
    "bench op",
    "bench step --model vit-tiny/12 --image-size 84",
    "bench generate --model gpt-tiny-16",
    "reproduce mnist --budget quick --dry-run",
    "reproduce gpt --one-step --dry-run --rows 1"};

TEST_F(DeviceOption, RefusesAnUnknownNameInEveryCommand) {
  for (const auto& command : kComputing)
    expect_refused({(command + " --device gpu").c_str(),
                    "device: expected cpu, cuda, cuda:N or mps, got 'gpu'"});
}

TEST_F(DeviceOption, FailsForAMissingDeviceInEveryCommand) {
  if (at::globalContext().hasCUDART()) GTEST_SKIP() << "this LibTorch has CUDA";
  for (const auto& command : kComputing) {
    const auto outcome = run(command + " --device cuda:1");
    EXPECT_EQ(outcome.code, 1) << command;
    EXPECT_EQ(outcome.err,
              "translution: device cuda:1: this LibTorch was built without CUDA; use cpu\n");
    EXPECT_THAT(outcome.out, IsEmpty()) << command;
  }
}

TEST_F(DeviceOption, IsNotRecordedForTheCpu) {
  const auto path = trained("run", "--device cpu");
  expect_undisturbed(path);
  EXPECT_THAT(read_file(path + "/config.toml"), Not(HasSubstr("device")));
  EXPECT_FALSE(load_manifest(path).state.at("training").contains("device"));
  EXPECT_EQ(run("eval --json --device cpu " + path).out, run("eval --json " + path).out);
}

// Other devices use the portable path. On the CPU it gives the same run up to rounding.
TEST_F(DeviceOption, ThePortablePathGivesTheSameLosses) {
  const auto outcome = run(train("run"), "TRANSLUTION_IMPL=portable");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto portable = log_of(path("run")), fused = log_of(undisturbed());
  ASSERT_EQ(portable.size(), fused.size());
  for (size_t line = 0; line < fused.size(); ++line)
    for (size_t value = 0; value < fused[line].values.size(); ++value) {
      if (fused[line].values[value].first != "loss") continue;
      EXPECT_NEAR(portable[line].values[value].second, fused[line].values[value].second, 1e-3)
          << "step " << fused[line].step << ", " << fused[line].split;
    }
}

}  // namespace
}  // namespace translution
