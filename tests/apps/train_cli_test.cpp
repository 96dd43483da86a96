// `translution train`: settings that affect the weights, settings that do not, and wrong calls.

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"
#include "translution/train/checkpoint.h"

namespace translution {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

using Train = SmallRun;

TEST_F(Train, GivesTheSameWeightsForAnyNumberOfWorkers) {
  expect_undisturbed(trained("none", "--workers 0"));
  expect_undisturbed(trained("two", "--workers 2"));
}

TEST_F(Train, AccumulationIsDeterministic) {
  const auto first = trained("first", "--accumulate 3");
  EXPECT_EQ(weights_of(first), weights_of(trained("second", "--accumulate 3")));
}

TEST_F(Train, GivesOtherWeightsForAnotherSeed) {
  EXPECT_NE(weights_of(trained("other", "--seed 1")), weights_of(undisturbed()));
}

TEST_F(Train, WritesTheFilesOfARunDirectory) {
  for (const char* name :
       {"config.toml", "metrics.jsonl", "metrics.csv", "checkpoints/last/model.safetensors",
        "checkpoints/last/optimizer.safetensors", "checkpoints/last/manifest.json",
        "checkpoints/best/model.safetensors"})
    EXPECT_TRUE(std::filesystem::exists(undisturbed() + "/" + name)) << name;
  EXPECT_EQ(log_of(undisturbed()).size(), 4 + 2 * 3) << "a line each 3 steps, 2 sets each epoch";
}

TEST_F(Train, CountsTheActualSamplesOfABatch) {
  const auto rate = [&](const std::string& batch) {
    const std::string call =
        "train --data digits:64 --canvas 28 --model vit-a/28 --steps 1 --eval-limit 5 --batch ";
    EXPECT_EQ(run(call + batch + " --out " + path(batch)).code, 0);
    const auto lines = read_metrics(path(batch) + "/metrics.jsonl");
    for (const auto& [name, value] : lines.front().values)
      if (name == "samples_per_s") return value;
    return 0.0;
  };
  const double few = rate("64");
  EXPECT_GT(few, 0);
  EXPECT_LT(rate("1000000"), 100 * few) << "a batch has at most the 64 samples of the data";
}

TEST_F(Train, ItsConfigurationRepeatsARun) {
  const auto outcome =
      run("train --threads 1 --config " + undisturbed() + "/config.toml --out " + path("again"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_undisturbed(path("again"));
}

TEST_F(Train, TheCommandLineWinsOverTheFile) {
  write_file_atomically(path("small.toml"), "[train]\nsteps = 1\nbatch = 7\nseed = 3\n");
  const std::string call = "train --data digits:20 --canvas 28 --eval-limit 5 --model vit-a/28 ";
  EXPECT_EQ(run(call + "--config " + path("small.toml") + " --batch 5 --out " + path("run")).code,
            0);
  const auto config = read_file(path("run") + "/config.toml");
  EXPECT_THAT(config, HasSubstr("\nbatch = \"5\"\n"));
  EXPECT_THAT(config, HasSubstr("\nseed = \"3\"\n"));
  EXPECT_THAT(config, HasSubstr("\nsteps = \"1\"\n"));
}

TEST_F(Train, AnInvalidConfigurationFileIsReportedInOneLine) {
  const auto expect_stop = [&](const std::string& text, int code, const std::string& message) {
    write_file_atomically(path("bad.toml"), text);
    const auto outcome = run("train --config " + path("bad.toml") + " --out " + path("run"));
    EXPECT_EQ(outcome.code, code) << text;
    EXPECT_THAT(outcome.err, HasSubstr("translution: " + path("bad.toml") + message)) << text;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(path("run")));
  };
  expect_stop("batches = 7\n", 2, ": unknown setting 'batches'; did you mean 'batch'?\n");
  expect_stop("[train]\nbatch = 7\n[run]\nbatch = 8\n", 2, ": batch is given more than once\n");
  expect_stop("batch = 7\nseed\n", 1, ":2: ");
  expect_stop("batch = 1979-05-27\n", 1,
              ": batch: expected text, a number, true, false or a list\n");
}

// Earlier versions wrote the settings of the canvas for text, too.
TEST_F(Train, ConfigHasOnlyTheSettingsOfItsDataAndOlderRunsResume) {
  const std::string text =
      "train --data text --model gpt-tiny-16 --batch 2 --eval-limit 1 "
      "--threads 1 --out " +
      path("text");
  ASSERT_EQ(run(text + " --steps 1").code, 0);
  const auto config = read_file(path("text") + "/config.toml");
  EXPECT_THAT(config, HasSubstr("\neval-limit = "));
  const char* others[] = {"canvas", "train-on", "placement", "eval-on", "augment", "max-broken"};
  for (const char* name : others) EXPECT_THAT(config, Not(HasSubstr(name)));
  EXPECT_THAT(read_file(undisturbed() + "/config.toml"), HasSubstr("\ncanvas = \"42x42\"\n"));

  const std::map<std::string, std::string> older = {{"canvas", "84x84"},
                                                    {"train-on", "static"},
                                                    {"placement", "fixed"},
                                                    {"eval-on", "static,dynamic"},
                                                    {"max-broken", "0.01"}};
  auto file = config;
  const auto checkpoint = path("text") + "/checkpoints/last";
  auto manifest = load_manifest(checkpoint);
  for (const auto& [name, value] : older) {
    file.insert(file.find("eval-limit"), name + " = \"" + value + "\"\n");
    manifest.state["config"][name] = value;
  }
  write_file_atomically(path("older.toml"), file);
  std::ofstream(checkpoint + "/manifest.json") << format_manifest(manifest);
  const auto resumed = run("train --config " + path("older.toml") +
                           " --steps 2 --threads 1 --resume auto --out " + path("text"));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(read_metrics(path("text") + "/metrics.jsonl").back().step, 2);
}

TEST_F(Train, StopsIfTheLossIsNotFinite) {
  const auto outcome = run(train("wild", "--lr 300 --clip 0 --schedule constant --weight-decay 0"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, ContainsRegex("training stopped: the (loss|norm of the gradients) is "
                                         "-?(nan|inf) in step [0-9]+ .epoch [0-9]+, batch [0-9]+: "
                                         "samples [0-9]+, "));
  EXPECT_THAT(outcome.err, HasSubstr("the last good checkpoint is " + path("wild") +
                                     "/checkpoints/step-000000"));
  const auto evaluated = run("eval " + path("wild") + " --json");
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
}

const WrongCall kWrongCalls[] = {
    {"train", "--out RUN is missing; see translution train --help"},
    {"train --out x --resume yes", "--resume: expected auto, got 'yes'"},
    {"train --out x --model vit-a --train-on fresh",
     "unknown train-on 'fresh'; expected one of static, dynamic, scaled, rotated, clutter"},
    {"train --out x --model vit-a --eval-on static,fresh",
     "unknown eval-on 'fresh'; expected one of static, dynamic, scaled, rotated, clutter"},
    {"train --out x --batch 0", "--batch: expected 1 to 1099511627776, got 0"},
    {"train --out x --batch 4 --accumulate 5", "accumulate: expected at most the batch, 4, got 5"},
    {"train --out x --data digits:20 --augment light",
     "--augment: expected image folders (--data images:DIR), got digits:20"},
    {"train --out x --data images:x --augment strong",
     "unknown augment 'strong'; expected one of none, light, full"},
    {"train --out x --metod y", "unknown option --metod; did you mean --method?"},
    {"train --out x --data text --model vit-a/12",
     "vit-a/12: expected images, got text (text); use a gpt model"},
    {"train --out x --data text", "vit-a/12: expected images, got text (text); use a gpt model"},
};

TEST(TrainWrongCalls, GetOneLineAndCodeTwo) {
  for (const auto& call : kWrongCalls) expect_refused(call);
}

}  // namespace
}  // namespace translution
