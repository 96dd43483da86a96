// Runs with weights and moments in files: the same bits as in memory, also after kills.

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "tests/support/study.h"
#include "tests/support/temp_dir.h"
#include "translution/core/random.h"
#include "translution/train/checkpoint.h"
#include "translution/train/offload_mark.h"

namespace translution {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const std::string kByLayer = "--clip-by layer --clip 0.1 ";

class OffloadedRun : public SmallRun {
 protected:
  // An empty directory for --offload.
  std::string files(const std::string& name) const {
    const auto directory = path(name + ".files");
    fs::create_directories(directory);
    return directory;
  }
  std::string offload(const std::string& name) const {
    return kByLayer + "--offload " + files(name) + " ";
  }
  // Removes the last two checkpoints: what a kill after step 8 leaves.
  void undo_last_steps(const std::string& name) const {
    for (const int64_t step : {kSmallSteps, kSmallSteps - 2})
      fs::remove_all(path(name) + "/checkpoints/" + checkpoint_name(step));
  }
  // Of a run in memory.
  std::string expected() const {
    static const std::string weights = weights_of(trained("memory", kByLayer));
    return weights;
  }
};

TEST_F(OffloadedRun, GivesTheWeightsOfARunInMemoryOnAnyNumberOfThreads) {
  EXPECT_EQ(weights_of(trained("one", offload("one"))), expected());
  EXPECT_EQ(weights_of(trained("three", offload("three") + "--threads 3")), expected());
}

TEST_F(OffloadedRun, InPartsAndInBf16GivesTheWeightsOfARunInMemory) {
  const std::string more = "--accumulate 3 --precision bf16 ";
  EXPECT_EQ(weights_of(trained("files", offload("files") + more)),
            weights_of(trained("memory-bf16", kByLayer + more)));
}

TEST_F(OffloadedRun, OfATextModelGivesTheWeightsOfARunInMemory) {
  const std::string text =
      "train --data text --model gpt-2x48x3x96-32 --method translution --batch 4 --steps 4 "
      "--save-every 2 --eval-limit 4 --threads 1 --clip-by last --clip 0.5 ";
  EXPECT_EQ(run(text + "--out " + path("memory")).code, 0);
  const auto outcome = run(text + "--offload " + files("text") + " --out " + path("text"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(weights_of(path("text")), weights_of(path("memory")));
}

TEST_F(OffloadedRun, GivesTheSameWeightsAfterKillsAtRandomTimes) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  EXPECT_EQ(weights_of(trained("whole", offload("whole"))), expected());
  const double whole = std::chrono::duration<double>(Clock::now() - start).count();
  const auto log = log_of(path("whole"));
  const int64_t kills = repeats(2, 100);
  Random random({20, 3});
  int64_t good = 0;
  for (int64_t kill = 0; kill < kills; ++kill) {
    const std::string name = "kill" + std::to_string(kill);
    const double moment = (0.2 + 0.7 * random.uniform()) * whole;
    SCOPED_TRACE("killed after " + std::to_string(moment) + " s");
    {
      const Started program(train(name, offload(name)));
      std::this_thread::sleep_for(std::chrono::duration<double>(moment));
      program.send(SIGKILL);
      program.wait();
    }
    const auto outcome = run(train(name, offload(name) + "--resume auto"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(weights_of(path(name)), expected());
    EXPECT_EQ(log_of(path(name)).size(), log.size());
    good += !HasFailure();
    fs::remove_all(path(name));
    fs::remove_all(files(name));
  }
  print_figure("with --offload, killed at random moments: the same when resumed",
               std::to_string(good) + " of " + std::to_string(kills));
}

TEST_F(OffloadedRun, SaysThatAStepWasInterruptedAndResumesFromTheCheckpoint) {
  const auto directory = trained("stopped", offload("stopped"));
  undo_last_steps("stopped");
  auto mark = read_offload_mark(files("stopped"));
  EXPECT_EQ(mark.step, kSmallSteps);
  EXPECT_FALSE(mark.updating);
  mark.step = 9, mark.updating = true;
  write_offload_mark(files("stopped"), mark);
  for (const auto& file : fs::directory_iterator(files("stopped")))  // a half-done update
    if (file.path().extension() == ".state") std::ofstream(file.path()) << "half-done";
  const auto outcome = run(train("stopped", offload("stopped") + "--resume auto"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("offload: step 10 was interrupted in " + files("stopped") +
                                     "; its files are filled again from the last checkpoint\n"));
  EXPECT_THAT(outcome.err, HasSubstr("resumed after step 8\n"));
  EXPECT_EQ(weights_of(directory), expected());
}

TEST_F(OffloadedRun, ResumesInMemoryAndFromMemory) {
  const auto resumed = [&](const std::string& first, const std::string& second) {
    const std::string name = first.empty() ? "from-memory" : "in-memory";
    trained(name, kByLayer + first);
    undo_last_steps(name);
    const auto outcome = run(train(name, kByLayer + second + "--resume auto"));
    EXPECT_THAT(outcome.err, HasSubstr("resumed after step 8\n"));
    return weights_of(path(name));
  };
  const std::string in_files = "--offload " + files("both") + " ";
  EXPECT_EQ(resumed(in_files, ""), expected());
  EXPECT_EQ(resumed("", in_files), expected());
}

TEST_F(OffloadedRun, LogsTimeBytesAndPeakMemoryOfEachStep) {
  const auto directory = trained("logged", offload("logged"));
  int64_t lines = 0;
  for (const auto& moment : read_metrics(directory + "/metrics.jsonl")) {
    if (moment.split != "train") continue;
    ++lines;
    std::map<std::string, double> values(moment.values.begin(), moment.values.end());
    EXPECT_GT(values["seconds_per_step"], 0);
    EXPECT_GE(values["read_mib_per_step"], 0);
    EXPECT_GT(values["written_mib_per_step"], 0);
    EXPECT_GT(values["peak_resident_mib"], 10);
  }
  EXPECT_EQ(lines, 4);
}

TEST_F(OffloadedRun, IsRefusedWithAReason) {
  const std::string absent = path("absent"), file = path("file"), used = files("used");
  std::ofstream(file) << "x";
  trained("used", offload("used"));
  const auto refusal = [&](const std::string& more, int code = 2, const char* heads = "x3x96") {
    auto arguments = train("refused", more);
    arguments.replace(arguments.find("x3x96"), 5, heads);
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_FALSE(fs::exists(path("refused"))) << more;
    return outcome.err;
  };
  EXPECT_EQ(refusal("--offload " + used),
            "translution: clip-by: expected layer or last with offload, got global, whose norm is "
            "known only after the first layers are updated; use --clip-by layer, --clip-by last or "
            "--clip 0\n");
  EXPECT_EQ(refusal(kByLayer + "--offload " + absent),
            "translution: offload: " + absent +
                " does not exist; create the directory, on a fast disk\n");
  EXPECT_EQ(refusal(kByLayer + "--offload " + file),
            "translution: offload: " + file + " is not a directory; name one on a fast disk\n");
  EXPECT_EQ(refusal(kByLayer + "--offload " + used, 2, "x3x92"),
            "translution: offload: " + used +
                " holds the files of another model: expected vit-6x48x3x92/21 with "
                "alpha_translution, got vit-6x48x3x96/21 with alpha_translution; remove "
                "offload.json and the *.state files there, or choose another directory\n");
  EXPECT_EQ(refusal(kByLayer + "--offload " + used + " --device mps"),
            "translution: offload: expected the device cpu, got mps\n");
  std::ofstream(used + "/offload.json") << "{";
  EXPECT_EQ(refusal(kByLayer + "--offload " + used, 1),
            "translution: " + used +
                "/offload.json: is damaged; remove it and the *.state files beside it\n");
}

TEST_F(OffloadedRun, IsRefusedInADirectoryWithoutWritePermission) {
  const auto directory = files("fixed");
  fs::permissions(directory, fs::perms::owner_read | fs::perms::owner_exec);
  if (access(directory.c_str(), W_OK) == 0) GTEST_SKIP() << "this user may write everywhere";
  EXPECT_EQ(run(train("fixed", offload("fixed"))).err,
            "translution: offload: " + directory +
                " cannot be written to: Permission denied; choose a directory with write "
                "permission\n");
}

TEST_F(OffloadedRun, OfAModelLargerThanTheMachineIsCountedByInfo) {
  constexpr double kMachine = 22e9;
  const std::string info = "info --model vit-c/16 --method translution --batch 256 ";
  const auto cost = json_of(info + "--offload")[0];
  EXPECT_GT(cost["training_bytes"], kMachine);
  EXPECT_LT(cost["offload_bytes"], kMachine);
  EXPECT_EQ(cost["offload_file_bytes"], 12 * cost["parameters"].get<int64_t>());
  EXPECT_LT(json_of(info + "--offload --accumulate 8")[0]["offload_bytes"], cost["offload_bytes"]);
  expect_refused({"info --model vit-c/16 --accumulate 2", "--accumulate is for --offload"});
  expect_refused(
      {"info --model vit-c/16 --offload --accumulate 2", "--accumulate: expected 1 to 1, got 2"});
}

// 3,000 layers of 76 million weights.
TEST_F(OffloadedRun, IsRefusedIfTheDiskIsTooSmall) {
  const auto outcome =
      run("train --data digits:8 --canvas 84 --model vit-3000x384x6x384/12 --method translution "
          "--batch 1 --clip 0 --keep 1 --offload " +
          files("small") + " --out " + path("small"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err,
              MatchesRegex("translution: offload: weights, moments and 3 checkpoints need "
                           "[0-9.]+ TiB on the disk of .*/small.files, but only [0-9.]+ .iB are "
                           "available; free some space, lower --keep, or choose another "
                           "directory\n"));
  EXPECT_TRUE(fs::is_empty(files("small")));
}

TEST_F(OffloadedRun, OfTwoProcessesDoesNotShareADirectory) {
  const Started first(train("first", offload("shared")));
  for (int i = 0; i < 6000 && !fs::exists(files("shared") + "/head.state"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  first.send(SIGSTOP);
  const auto second = run(train("second", offload("shared")));
  first.send(SIGCONT);
  EXPECT_EQ(first.wait().code, 0);
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, HasSubstr(files("shared") + ": is in use by process "));
}

// 10 layers, 48 million weights: 548 MiB of weights and moments, in at most 500 MiB of memory.
TEST_F(OffloadedRun, TrainsAModelThatIsLargerThanTheMemory) {
  constexpr int64_t kMostMib = 500;
  const std::string large =
      "train --data digits:8 --canvas 84 --model vit-10x96x3x96/12 --method translution --batch 2 "
      "--steps 1 --keep 1 --eval-on static --eval-limit 2 --log-every 1 --threads 2 --out " +
      path("large");
  const std::string limit = "prlimit --data=" + std::to_string(kMostMib << 20);
  const auto plain = run(large, limit);
  EXPECT_EQ(plain.code, 1);
  EXPECT_THAT(plain.err, HasSubstr("choose a smaller model, or train with --offload DIR\n"));
  const auto outcome = run(large + " --clip-by layer --offload " + files("large"), limit);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  double peak = 0;
  for (const auto& moment : read_metrics(path("large") + "/metrics.jsonl"))
    for (const auto& [name, value] : moment.values)
      if (name == "peak_resident_mib") peak = value;
  print_figure("548 MiB of weights and moments: peak resident memory",
               std::to_string(static_cast<int64_t>(peak)) + " MiB");
  EXPECT_GT(peak, 0);
  EXPECT_LT(peak, kMostMib);
}

}  // namespace
}  // namespace translution
