// Runs that are killed, interrupted or stopped by a full disk, and go on.

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "translution/core/random.h"
#include "translution/io/file.h"
#include "translution/train/checkpoint.h"

namespace translution {
namespace {

using std::chrono::duration;
using testing::HasSubstr;

class Resume : public SmallRun {
 protected:
  std::string resume(const std::string& name) const { return train(name, "--resume auto"); }

  void expect_goes_on(const std::string& name) const {
    const auto outcome = run(resume(name));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_undisturbed(path(name));
  }
  // Until the condition holds; a minute at most.
  template <typename Condition>
  static void wait_for(const Condition& condition) {
    for (int i = 0; i < 60000 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  bool has_checkpoint(const std::string& name) const {
    return std::filesystem::exists(path(name) + "/checkpoints/last");
  }
};

double seconds_of_a_run(const std::string& arguments) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run(arguments).code, 0);
  return duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_F(Resume, EndsWithTheSameWeightsAndLogAfterKillsAtAnyMoment) {
  const double whole = seconds_of_a_run(train("whole"));
  Random random({20, 1});
  for (int kill = 0; kill < 3; ++kill) {
    const std::string name = "kill" + std::to_string(kill);
    const Started program(train(name));
    std::this_thread::sleep_for(duration<double>(random.uniform(0.2, 0.9) * whole));
    program.send(SIGKILL);
    EXPECT_EQ(program.wait().code, -1) << "the run was over before it was killed";
    expect_goes_on(name);
  }
}

// The first save begins at about the 18th call and takes about 415, as does each of the others.
TEST_F(Resume, EndsWithTheSameWeightsAndLogAfterKillsInsideASave) {
  Random random({20, 2});
  for (int kill = 0; kill < 3; ++kill) {
    const std::string name = "save" + std::to_string(kill);
    const std::string call = std::to_string(20 + random.below(2400));
    EXPECT_EQ(run(train(name), "TRANSLUTION_WRITE_FAULT=kill:" + call).code, -1) << call;
    expect_goes_on(name);
  }
}

TEST_F(Resume, AFullDiskInsideASaveIsNamedAndLeavesTheCheckpointBefore) {
  const auto outcome = run(train("full"), "TRANSLUTION_WRITE_FAULT=enospc:600");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("failed, earlier ones are whole: "));
  EXPECT_THAT(outcome.err, HasSubstr("No space left on device"));
  EXPECT_EQ(run("eval " + path("full")).code, 0);
  expect_goes_on("full");
}

TEST_F(Resume, AnInterruptSavesAndSaysHowToGoOn) {
  const Started program(train("stopped"));
  wait_for([&] { return has_checkpoint("stopped"); });
  program.send(SIGINT);
  const auto outcome = program.wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("translution: stopped after step "));
  EXPECT_THAT(outcome.err, HasSubstr("; the checkpoint is saved: go on with --resume auto\n"));
  const auto steps = list_steps(path("stopped") + "/checkpoints");
  EXPECT_THAT(outcome.err, HasSubstr("step " + std::to_string(steps.front()) + ";"));
  expect_goes_on("stopped");
}

TEST_F(Resume, ADamagedCheckpointIsNamedAndTheOneBeforeTaken) {
  std::filesystem::copy(
      undisturbed(), path("damaged"),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  std::filesystem::resize_file(path("damaged") + "/checkpoints/last/model.safetensors", 1000);
  const auto outcome = run(resume("damaged"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("step-00000012/model.safetensors"));
  EXPECT_THAT(outcome.err, HasSubstr("going on after step 10\n"));
  expect_undisturbed(path("damaged"));
}

TEST_F(Resume, OfARunThatIsOverChangesNothing) {
  trained("over");
  expect_goes_on("over");
}

TEST_F(Resume, StartsWhereThereIsNothingYet) { expect_goes_on("new"); }

TEST_F(Resume, WithoutItARunIsNotOverwritten) {
  const auto outcome =
      run("train --config " + undisturbed() + "/config.toml --out " + undisturbed());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr(" holds a run already; use --resume auto to go on, or another --out\n"));
}

TEST_F(Resume, NamesWhatIsDifferentAndLeavesTheRunAlone) {
  const std::string directory = trained("run"), config = read_file(directory + "/config.toml");
  const auto expect_difference = [&](const std::string& other, const std::string& message) {
    const auto outcome = run("train --config " + directory + "/config.toml --resume auto --out " +
                             directory + " " + other);
    EXPECT_EQ(outcome.code, 2) << other;
    EXPECT_THAT(outcome.err, HasSubstr("translution: resume: " + message));
    EXPECT_EQ(read_file(directory + "/config.toml"), config) << other;
  };
  expect_difference("--seed 4", "seed is '4' now and '0' in ");
  expect_difference("--model vit-a/14", "model is 'vit-a/14' now and 'vit-a/21' in ");
  expect_difference("--data digits:65", "data is 'digits:65' now and 'digits:64' in ");
}

TEST_F(Resume, TwoProcessesDoNotWriteIntoOneRun) {
  const Started first(train("shared"));
  wait_for([&] { return has_checkpoint("shared"); });
  first.send(SIGSTOP);  // so that it does not end before the other comes
  const auto second = run(resume("shared"));
  first.send(SIGCONT);
  EXPECT_EQ(first.wait().code, 0);
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, HasSubstr("is in use by process "));
  expect_undisturbed(path("shared"));
}

}  // namespace
}  // namespace translution
