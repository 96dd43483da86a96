// Runs that are killed, interrupted or stopped by a full disk, and then resumed.

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "tests/support/process.h"
#include "tests/support/study.h"
#include "translution/core/random.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"
#include "translution/train/checkpoint.h"
#include "translution/train/metrics.h"

namespace translution {
namespace {

namespace fs = std::filesystem;
using std::chrono::duration;
using ::testing::HasSubstr;

class Resume : public SmallRun {
 protected:
  std::string resume(const std::string& name) const { return train(name, "--resume auto"); }
  void copy_run(const std::string& name) const {
    fs::copy(undisturbed(), path(name),
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }

  // Resumes the run, expects the result of the undisturbed run, and removes it.
  bool resumes_exactly(const std::string& name) const {
    const auto outcome = run(resume(name));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_undisturbed(path(name));
    fs::remove_all(path(name));
    return !HasFailure();
  }
  // Waits until the condition holds, at most a minute.
  template <typename Condition>
  static void wait_for(const Condition& condition) {
    for (int i = 0; i < 60000 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  bool has_checkpoint(const std::string& name) const {
    return fs::exists(path(name) + "/checkpoints/last");
  }
};

double seconds_of_a_run(const std::string& arguments) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run(arguments).code, 0);
  return duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Starts the program and kills it after `seconds`. Returns false if it had ended before.
bool kill_after(double seconds, const std::string& arguments) {
  const Started program(arguments);
  std::this_thread::sleep_for(duration<double>(seconds));
  program.send(SIGKILL);
  return program.wait().code == -1;
}

std::string of(int64_t good, int64_t all) {
  return std::to_string(good) + " of " + std::to_string(all);
}

TEST_F(Resume, GivesTheSameWeightsAndLogAfterKillsAtRandomTimes) {
  const double whole = seconds_of_a_run(train("whole"));
  const int64_t kills = repeats(3, 150);
  Random random({20, 1});
  int64_t good = 0;
  for (int64_t kill = 0; kill < kills; ++kill) {
    const std::string name = "kill" + std::to_string(kill);
    double moment = random.uniform() * whole;
    for (; !kill_after(moment, train(name)); moment *= 0.7) fs::remove_all(path(name));
    SCOPED_TRACE("killed after " + std::to_string(moment) + " s");
    good += resumes_exactly(name);
  }
  print_figure("killed at random moments: same SHA-256 and log when resumed", of(good, kills));
}

// The first save begins at about the 18th call and takes about 415, as does each of the others.
TEST_F(Resume, GivesTheSameWeightsAndLogAfterKillsDuringASave) {
  const int64_t kills = repeats(2, 50);
  Random random({20, 2});
  int64_t good = 0;
  for (int64_t kill = 0; kill < kills; ++kill) {
    const std::string name = "save" + std::to_string(kill);
    const std::string call = std::to_string(20 + random.below(2400));
    SCOPED_TRACE("killed at call " + call);
    EXPECT_EQ(run(train(name), with_fault("kill:" + call)).code, -1);
    good += resumes_exactly(name);
  }
  print_figure("killed inside a save: the same", of(good, kills));
}

TEST_F(Resume, AFullDiskDuringASaveIsReportedAndLeavesThePreviousCheckpoint) {
  const auto outcome = run(train("full"), with_fault("enospc:600"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("failed; earlier checkpoints are intact: "));
  EXPECT_THAT(outcome.err, HasSubstr("No space left on device"));
  EXPECT_EQ(run("eval " + path("full")).code, 0);
  EXPECT_TRUE(resumes_exactly("full"));
}

// Calls 450 to 850 belong to the second save. A fault stops the run with a message or has no
// effect.
TEST_F(Resume, AFullDiskOrAShortWriteDuringASaveLeavesThePreviousCheckpoint) {
  const int64_t every = repeats(400, 10);
  int64_t good = 0, all = 0;
  for (const char* kind : {"enospc:", "torn:", "cut:"})
    for (int64_t call = 450; call <= 850; call += every, ++all) {
      const std::string fault = kind + std::to_string(call), name = "fault" + std::to_string(all);
      SCOPED_TRACE(fault);
      const auto outcome = run(train(name), with_fault(fault));
      const bool stopped = outcome.err.find("No space left on device") != std::string::npos;
      EXPECT_EQ(outcome.code, stopped ? 1 : 0) << outcome.err;
      EXPECT_TRUE(fs::exists(path(name) + "/checkpoints/last/model.safetensors"));
      good += resumes_exactly(name);
    }
  print_figure("full disk or short write inside a save: the same", of(good, all));
}

TEST_F(Resume, SignalsSaveACheckpointAndSayHowToContinue) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(strsignal(signal));
    const Started program(train("stopped"));
    wait_for([&] { return has_checkpoint("stopped"); });
    program.send(signal);
    const auto outcome = program.wait();
    EXPECT_EQ(outcome.code, 128 + signal);
    EXPECT_THAT(outcome.err, HasSubstr("translution: stopped after step "));
    EXPECT_THAT(outcome.err, HasSubstr("; a checkpoint is saved, continue with --resume auto\n"));
    const auto steps = list_steps(path("stopped") + "/checkpoints");
    EXPECT_THAT(outcome.err, HasSubstr("step " + std::to_string(steps.front()) + ";"));
    EXPECT_TRUE(resumes_exactly("stopped"));
  }
}

TEST_F(Resume, NohupIgnoresSighup) {
  const Started program(train("nohup"), "nohup");
  wait_for([&] { return has_checkpoint("nohup"); });
  program.send(SIGHUP);
  EXPECT_EQ(program.wait().code, 0);
  expect_undisturbed(path("nohup"));
}

TEST_F(Resume, AClosedPipeDoesNotEndARun) {
  int code = 0;
  testing::output_of_command(TRANSLUTION_PROGRAM " " + train("pipe") + " 2>&1 | true", &code);
  expect_undisturbed(path("pipe"));
}

TEST_F(Resume, ARunWithClosedStandardStreamsIsComplete) {
  int code = 1;
  testing::output_of_command(TRANSLUTION_PROGRAM " " + train("closed") + " <&- >&- 2>&-", &code);
  EXPECT_EQ(code, 0);
  expect_undisturbed(path("closed"));
  EXPECT_EQ(read_file(path("closed") + "/config.toml"), read_file(undisturbed() + "/config.toml"));
  EXPECT_TRUE(resumes_exactly("closed"));
}

// The signal arrives during an evaluation of several seconds. The log has each evaluation once.
TEST_F(Resume, AnInterruptedEvaluationStopsWithinASecondAndIsRepeated) {
  const std::string arguments =
      "train --data digits:20000 --train-limit 16 --model vit-tiny/12 --method self_attention "
      "--batch 16 --steps 2 --log-every 1 --eval-every 1 --threads 1 --resume auto --out " +
      path("stopped");
  const auto log_size = [&] {
    std::error_code error;
    const auto size = fs::file_size(path("stopped") + "/metrics.jsonl", error);
    return error ? 0 : size;
  };
  const Started program(arguments);
  wait_for([&] { return log_size() > 0; });
  program.send(SIGTERM);
  const auto start = std::chrono::steady_clock::now();
  const auto outcome = program.wait();
  EXPECT_LT(duration<double>(std::chrono::steady_clock::now() - start).count(), 1);
  EXPECT_THAT(outcome.err, HasSubstr("stopped after step 1; a checkpoint is saved"));
  EXPECT_EQ(read_metrics(path("stopped") + "/metrics.jsonl").size(), 1u) << "was not evaluated yet";

  const auto resumed = run(arguments);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  std::vector<std::string> moments;
  for (const auto& moment : read_metrics(path("stopped") + "/metrics.jsonl"))
    moments.push_back(std::to_string(moment.step) + " " + moment.split);
  EXPECT_THAT(moments, ::testing::ElementsAre("1 train", "1 static", "1 dynamic", "2 train",
                                              "2 static", "2 dynamic"));
}

TEST_F(Resume, ADamagedCheckpointIsNamedAndThePreviousOneUsed) {
  copy_run("damaged");
  fs::resize_file(path("damaged") + "/checkpoints/last/model.safetensors", 1000);
  const auto outcome = run(resume("damaged"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("step-00000012/model.safetensors"));
  EXPECT_THAT(outcome.err, HasSubstr("resumed after step 10\n"));
  expect_undisturbed(path("damaged"));
}

TEST_F(Resume, StopsIfAllCheckpointsAreDamaged) {
  const std::string directory = trained("lost", "--keep 1");
  std::string first;
  for (const int64_t step : list_steps(directory + "/checkpoints")) {
    first = directory + "/checkpoints/" + checkpoint_name(step) + "/optimizer.safetensors";
    fs::resize_file(first, 1000);
  }
  const auto outcome = run(train("lost", "--keep 1 --resume auto"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(first + ": is damaged: has 1000 bytes"));
  EXPECT_THAT(
      outcome.err,
      HasSubstr("\ntranslution: " + directory +
                "/checkpoints: all checkpoints are damaged; remove the run to start again"));
  EXPECT_EQ(fs::file_size(first), 1000);
  EXPECT_EQ(run("eval " + directory).code, 0) << "the weights are whole";
}

TEST_F(Resume, RefusesToOverwriteTheLogOfARunWithoutCheckpoints) {
  const auto expect_kept = [&](const std::string& name) {
    const std::string log = read_file(path(name) + "/metrics.jsonl");
    for (const auto& call : {train(name), resume(name)}) {
      const auto outcome = run(call);
      EXPECT_EQ(outcome.code, 2) << call;
      EXPECT_EQ(outcome.err,
                "translution: " + path(name) +
                    " has metrics.jsonl but no checkpoint to resume from, and a new run "
                    "would overwrite it; move it away, or use another --out\n");
      EXPECT_EQ(read_file(path(name) + "/metrics.jsonl"), log);
    }
  };
  copy_run("gone");
  fs::remove_all(path("gone") + "/checkpoints");
  expect_kept("gone");
  copy_run("emptied");  // as `rm -r checkpoints/*` does it
  for (const auto& entry : fs::directory_iterator(path("emptied") + "/checkpoints"))
    if (entry.path().filename().string().front() != '.') fs::remove_all(entry.path());
  expect_kept("emptied");
}

TEST_F(Resume, FilesOfOthersAreNotOverwritten) {
  for (const std::string name : {"config.toml", "metrics.jsonl", "metrics.csv"}) {
    fs::create_directories(path(name));
    write_file_atomically(path(name) + "/" + name, "mine");
    for (const auto& call : {train(name), resume(name)}) {
      const auto outcome = run(call);
      EXPECT_EQ(outcome.code, 2) << call;
      EXPECT_THAT(outcome.err, HasSubstr(path(name) + " has " + name + " but no checkpoint"));
      EXPECT_EQ(read_file(path(name) + "/" + name), "mine");
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(path(name)), {}), 1);
  }
}

TEST_F(Resume, StartsAgainAfterAKillBeforeTheFirstCheckpoint) {
  EXPECT_EQ(run(train("early"), with_fault("kill:30")).code, -1);
  EXPECT_TRUE(fs::exists(path("early") + "/metrics.jsonl"));
  EXPECT_FALSE(has_checkpoint("early"));
  EXPECT_EQ(run(train("early")).code, 2) << "without --resume, a run is there already";
  EXPECT_TRUE(resumes_exactly("early"));
}

TEST_F(Resume, RefusesFewerStepsThanWereDone) {
  copy_run("more");
  const auto outcome = run("train --config " + undisturbed() + "/config.toml --steps 5 --out " +
                           path("more") + " --resume auto");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "translution: resume: " + path("more") +
                             " has reached step 12, expected at most 5; raise --steps or --epochs, "
                             "or use another --out\n");
}

TEST_F(Resume, AFailedFirstSaveSaysThatThereIsNoEarlierCheckpoint) {
  const auto first = run(train("first"), with_fault("enospc:100"));
  EXPECT_EQ(first.code, 1);
  EXPECT_THAT(first.err,
              HasSubstr("the checkpoint of step 2 failed; there is no earlier checkpoint: "));
}

TEST_F(Resume, LeavesAFinishedRunUnchanged) {
  copy_run("over");
  EXPECT_TRUE(resumes_exactly("over"));
}

TEST_F(Resume, StartsANewRunInAnEmptyDirectory) { EXPECT_TRUE(resumes_exactly("new")); }

TEST_F(Resume, IsRequiredForADirectoryThatHoldsARun) {
  const auto outcome =
      run("train --config " + undisturbed() + "/config.toml --out " + undisturbed());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(
      outcome.err,
      HasSubstr(" already holds a run; use --resume auto to continue it, or another --out\n"));
}

TEST_F(Resume, NamesChangedSettingsAndLeavesTheRunUnchanged) {
  copy_run("run");
  const std::string directory = path("run"), config = read_file(directory + "/config.toml");
  const auto expect_difference = [&](const std::string& other, const std::string& message) {
    const auto outcome = run("train --config " + directory + "/config.toml --resume auto --out " +
                             directory + " " + other);
    EXPECT_EQ(outcome.code, 2) << other;
    EXPECT_THAT(outcome.err, HasSubstr("translution: resume: " + message));
    EXPECT_EQ(read_file(directory + "/config.toml"), config) << other;
  };
  expect_difference("--seed 4", "seed is '4' now and '0' in ");
  expect_difference("--model vit-a/14", "model is 'vit-a/14' now and 'vit-6x48x3x96/21' in ");
  expect_difference("--data digits:65", "data is 'digits:65' now and 'digits:64' in ");
}

TEST_F(Resume, ReportsChangesOfSettingsThatMayChange) {
  const auto notice = [&](const std::string& settings) {
    const auto outcome = run(train("run", "--resume auto " + settings));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto begin = outcome.err.find("resume with changed settings: ");
    if (begin == std::string::npos) return std::string();
    return outcome.err.substr(begin, outcome.err.find('\n', begin) - begin);
  };
  copy_run("run");
  EXPECT_EQ(notice(""), "");
  EXPECT_EQ(notice("--workers 2 --keep 2"), "") << "does not affect the result";
  EXPECT_EQ(notice("--lr 0.002 --schedule constant --weight-decay 0.1 --clip 0"),
            "resume with changed settings: lr 0.002 (was 0.001), schedule constant (was cosine), "
            "weight-decay 0.1 (was 0.05), clip 0 (was 1)");
}

TEST_F(Resume, TwoProcessesDoNotWriteIntoOneRun) {
  const Started first(train("shared"));
  wait_for([&] { return has_checkpoint("shared"); });
  first.send(SIGSTOP);  // keeps it from ending before the second starts
  const auto second = run(resume("shared"));
  first.send(SIGCONT);
  EXPECT_EQ(first.wait().code, 0);
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, HasSubstr("is in use by process "));
  expect_undisturbed(path("shared"));
}

}  // namespace
}  // namespace translution
