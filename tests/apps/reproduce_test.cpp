// `translution reproduce` with settings that take seconds.

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/apps/program.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace translution {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using testing::get_bytes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TempDir;

const std::string kSmall =
    "reproduce mnist --rows 1,2 --steps 4 --batch 16 --train-limit 64 --eval-limit 32 --eval-every "
    "2 --save-every 1 --log-every 2 --threads 1 --out ";

// The results without entries that depend on time or directory.
json results_in(const std::string& out) {
  auto results = json::parse(get_bytes(out + "/results.json"));
  for (auto& row : results["rows"]) {
    row.erase("command");
    for (auto& run : row["runs"]) run.erase("seconds");
  }
  return results;
}

// A call without interruption, made once.
struct Undisturbed {
  Undisturbed() : outcome(run(kSmall + out)), results(results_in(out)) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }

  const TempDir directory;
  const std::string out = directory / "out";
  const Outcome outcome;
  const json results;
};

const Undisturbed& undisturbed() {
  static const Undisturbed call;
  return call;
}

TEST(Reproduce, WritesPaperAndOursForEveryFigure) {
  const auto& results = undisturbed().results;
  ASSERT_EQ(results["rows"].size(), 2);
  for (const auto& row : results["rows"]) {
    ASSERT_EQ(row["figures"].size(), 3);
    for (const auto& figure : row["figures"]) {
      EXPECT_TRUE(figure["ours"].is_number()) << figure;
      EXPECT_TRUE(figure["paper"].is_number()) << figure;
      EXPECT_EQ(figure["step"], 4);
    }
    ASSERT_EQ(row["runs"].size(), 2);
    for (const auto& training : row["runs"]) {
      EXPECT_TRUE(training["finished"]);
      EXPECT_EQ(training["seen"], 64);
    }
    EXPECT_THAT(row["cuts"].dump(), HasSubstr("vit-tiny/12 instead of vit-a/12"));
  }
}

TEST(Reproduce, WritesTableCurvesReportAndRuns) {
  const std::string& out = undisturbed().out;
  EXPECT_THAT(get_bytes(out + "/report.html"), HasSubstr("<svg"));
  const auto table = get_bytes(out + "/table.md");
  EXPECT_THAT(table, HasSubstr(" (18.18) |"));
  EXPECT_THAT(undisturbed().outcome.out, HasSubstr(table.substr(0, table.find("<details>"))));
  EXPECT_EQ(testing::names_in(out + "/curves").size(), 4);
  EXPECT_EQ(testing::names_in(out + "/runs").size(), 4);
}

TEST(Reproduce, ResumesAfterAKillWithTheSameResults) {
  for (const char* call : {"300", "1500", "2500"}) {
    const TempDir directory;
    const std::string out = directory / "out";
    EXPECT_EQ(run(kSmall + out, with_fault(std::string("kill:") + call)).code, -1) << call;
    const auto outcome = run(kSmall + out);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(results_in(out), undisturbed().results) << call;
  }
}

TEST(Reproduce, SkipsFinishedTrainings) {
  const std::string& out = undisturbed().out;
  const auto before = get_bytes(out + "/results.json");
  const auto outcome = run(kSmall + out);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("finished"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("step")));
  EXPECT_EQ(get_bytes(out + "/results.json"), before);
}

TEST(Reproduce, MergesRowsOfLaterCalls) {
  const TempDir directory;
  const std::string first =
      "reproduce position_encodings --steps 2 --batch 8 --train-limit 16 --eval-limit 8 --threads "
      "1 "
      "--out " +
      directory / "out";
  EXPECT_EQ(run(first + " --rows 3").code, 0);
  EXPECT_EQ(run(first + " --rows rotary").code, 0);
  const auto rows = results_in(directory / "out")["rows"];
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0]["method"], "relative_key");
  EXPECT_EQ(rows[1]["method"], "rotary");
  EXPECT_EQ(rows[1]["figures"].size(), 2);
}

TEST(Reproduce, TablesShareTrainings) {
  const TempDir directory;
  const std::string more =
      " --steps 2 --batch 8 --train-limit 16 --eval-limit 8 --threads 1 --runs " +
      directory / "runs" + " --out " + directory.path() + "/";
  EXPECT_EQ(run("reproduce mnist --rows 2" + more + "mnist").code, 0);
  const auto outcome = run("reproduce relative_vs_absolute --rows 1" + more + "absolute");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(testing::names_in(directory / "runs").size(), 2);
  EXPECT_EQ(results_in(directory / "mnist")["rows"][0]["runs"],
            results_in(directory / "absolute")["rows"][0]["runs"]);
}

TEST(Reproduce, SkipsTrainingsOfKnownResults) {
  const TempDir directory;
  const std::string more = " --steps 2 --batch 8 --train-limit 16 --eval-limit 8 --threads 1",
                    results = directory / "results", document = directory / "doc.md";
  EXPECT_EQ(run("reproduce mnist --rows 2" + more + " --out " + directory / "mnist").code, 0);
  std::filesystem::create_directories(results);
  testing::put_bytes(document, "");
  EXPECT_EQ(run("results " + results + " " + document + " --take " + directory / "mnist").code, 0);

  const std::string out = directory / "absolute",
                    call = "reproduce relative_vs_absolute --rows 1,2 --known " + results + more;
  EXPECT_THAT(run(call + " --dry-run").out, ContainsRegex(" known\n"));
  const auto outcome = run(call + " --out " + out);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(testing::names_in(out + "/runs").size(), 2);  // those of row 2
  EXPECT_EQ(testing::names_in(out + "/curves").size(), 4);
  const auto rows = results_in(out)["rows"];
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0]["runs"], results_in(directory / "mnist")["rows"][0]["runs"]);
  const auto command = json::parse(get_bytes(out + "/results.json"))["rows"][0]["command"];
  EXPECT_THAT(command.get<std::string>(), Not(HasSubstr("--known")));
  EXPECT_EQ(run("results " + results + " " + document + " --take " + out).code, 0);
}

TEST(Reproduce, TrainsOnTheBuiltInText) {
  const TempDir directory;
  const auto outcome =
      run("reproduce gpt --rows 2 --steps 2 --batch 2 --eval-limit 2 --threads 1 --out " +
          directory / "out");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto row = results_in(directory / "out")["rows"][0];
  EXPECT_EQ(row["figures"][0]["name"], "perplexity");
  EXPECT_GT(row["figures"][0]["ours"], 1);
  EXPECT_EQ(row["runs"][0]["seen"], 2 * 2 * 160);
}

TEST(Reproduce, ADryRunPrintsThePlanAndWritesNothing) {
  const TempDir directory;
  const auto outcome = run("reproduce mnist --rows 2 --dry-run --out " + directory / "out");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("vit-tiny-12-alpha_translution-dynamic-seed0-"));
  EXPECT_THAT(outcome.out, HasSubstr("vit-tiny/12 instead of vit-a/12"));
  EXPECT_THAT(outcome.out, HasSubstr(" to go (estimate)\n"));
  EXPECT_THAT(testing::names_in(directory.path()), IsEmpty());
}

TEST(Reproduce, ADryRunWithoutTheDataUsesItsKnownSizes) {
  const auto outcome = run("reproduce imagenet --budget paper --rows 1 --dry-run");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("The plan uses the known sizes of ImageNet-1K.\n"));
  EXPECT_THAT(outcome.out, HasSubstr("1,501,200"));  // 300 passes of 5,004 steps
}

// In a directory without the data.
TEST(Reproduce, SaysHowToFetchTheDataOfABudget) {
  const TempDir directory;
  const auto message = [&](const std::string& table) {
    int code = 0;
    const auto text = testing::output_of_command("cd " + directory.path() +
                                                     " && " TRANSLUTION_PROGRAM " reproduce " +
                                                     table + " --budget desk --out out 2>&1",
                                                 &code);
    EXPECT_EQ(code, 1) << text;
    return text;
  };
  EXPECT_THAT(message("mnist"), HasSubstr("; to fetch MNIST: scripts/fetch-mnist\n"));
  EXPECT_THAT(message("relative_dim"),
              HasSubstr("; to fetch Fashion-MNIST: scripts/fetch-fashion-mnist\n"));
  EXPECT_THAT(message("gpt"),
              HasSubstr("; to fetch tinyshakespeare: scripts/fetch-tinyshakespeare && "
                        "scripts/fetch-gpt2-bpe && translution data text "
                        "data/tinyshakespeare/input.txt --bpe data/gpt2 --out "
                        "data/tinyshakespeare\n"));
  EXPECT_THAT(testing::names_in(directory.path()), IsEmpty());
}

TEST(Reproduce, OneStepMeasuresMemory) {
  const TempDir directory;
  const auto outcome =
      run("reproduce gpt --rows 1 --one-step --threads 1 --out " + directory / "out");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto step = results_in(directory / "out")["steps"][0];
  EXPECT_EQ(step["batch"], 8);
  EXPECT_NEAR(step["loss"].get<double>(), std::log(50257), 1);
  EXPECT_GT(step["peak_bytes"], 16 * 21995904);  // weights, gradients and moments
  EXPECT_THAT(get_bytes(directory / "out/table.md"), HasSubstr("One step of training; "));
}

TEST(Reproduce, OneStepRecordsItsSettingsInItsCommand) {
  const TempDir directory;
  const auto outcome =
      run("reproduce gpt --rows 1 --one-step --memory 1 --batch 3 --threads 1 --out " +
          directory / "out");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto step = results_in(directory / "out")["steps"][0];
  EXPECT_EQ(step["batch"], 3);
  EXPECT_THAT(step["command"].get<std::string>(),
              HasSubstr("gpt --one-step --memory 1 --rows 1 --seeds 0 --batch 3 --out "));
}

// Moments that are allocated during the update are held, as for a second step.
TEST(Reproduce, OneStepInLittleMemoryHoldsItsMoments) {
  const TempDir directory;
  const auto outcome =
      run("reproduce relative_vs_absolute --rows 2 --one-step --memory 0.9 --batch 1 --threads 1 "
          "--out " +
          directory / "out");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto step = results_in(directory / "out")["steps"][0];
  EXPECT_THAT(step["data"].get<std::string>(), HasSubstr("moments made during the update"));
  constexpr double kWithMoments = 12.0 * 28727338, kProgram = 30e6;  // bytes, the latter at least
  EXPECT_GT(step["peak_bytes"], kWithMoments + kProgram);
}

TEST(Reproduce, ADryRunOfOneStepMarksRowsThatDoNotFit) {
  const auto outcome = run("reproduce imagenet --one-step --dry-run");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("vit-b/16 +translution"));
  EXPECT_THAT(outcome.out, ContainsRegex("vit-c/16 .* more than --memory, 20 GB\n"));
}

TEST(Reproduce, OneStepThatDoesNotFitIsRefused) {
  const TempDir directory;
  const auto outcome =
      run("reproduce gpt --rows 9 --one-step --memory 5 --out " + directory / "out");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("gpt-c-160 with translution: a step takes "));
  EXPECT_THAT(outcome.err, HasSubstr(" at least, more than --memory, 5 GB; name other rows"));
}

TEST(Reproduce, RefusesWrongCalls) {
  const WrongCall calls[] = {
      {"reproduce mnist", "--out DIR or --dry-run is missing; see translution reproduce --help"},
      {"reproduce minst --out x", "unknown table 'minst'; did you mean 'mnist'?"},
      {"reproduce mnist --budget deks --dry-run", "unknown budget 'deks'; did you mean 'desk'?"},
      {"reproduce mnist --rows 9 --dry-run",
       "rows: '9' is none of the 6 rows of mnist; expected numbers such as 1,3-5, a model or a "
       "method"},
      {"reproduce mnist --seeds 0,x --dry-run", "--seeds: expected a whole number, got 'x'"},
      {"reproduce mnist --epochs 0 --dry-run", "--epochs: expected 1 to 1099511627776, got 0"},
      {"reproduce gpt --budget desk --one-step --dry-run",
       "--one-step uses the paper's batch size, which --budget does not change; leave one of them "
       "out"},
      {"reproduce mnist --one-step --out x",
       "--one-step: the paper could train all rows of mnist; name some with --rows"},
      {"reproduce gpt --one-step --epochs 2 --dry-run",
       "--one-step: --epochs has no effect on a single step; leave it out"},
      {"reproduce gpt --one-step --runs x --dry-run",
       "--one-step writes no run directory; leave --runs out"},
      {"reproduce gpt --one-step --known x --dry-run",
       "--known is for trainings; leave it out with --one-step"},
      {"reproduce mnist --known '' --dry-run",
       "--known: expected a value, got ''; is a shell variable not set?"},
      {"reproduce gpt --one-step --rows 1 --data digits --dry-run",
       "gpt-a-160: expected text, got images (digits); use --data tokens:DIR, which "
       "`translution data text` writes"},
      {"reproduce gpt --memory 3 --dry-run",
       "--memory is for --one-step; use --accumulate to save memory in training"},
      {"reproduce mnist --out ''", "--out: expected a value, got ''; is a shell variable not set?"},
      {"reproduce mnist --runs '' --out x",
       "--runs: expected a value, got ''; is a shell variable not set?"},
      {"reproduce gpt --data digits:64 --dry-run",
       "gpt: expected text: --data tokens:DIR, got images"},
      {"reproduce mnist --seed 3 --dry-run", "unknown option --seed; did you mean --seeds?"},
  };
  for (const auto& call : calls) expect_refused(call);
}

// ----------------------------------------------------------------------------------- failures

TEST(Reproduce, RefusesAnUnusableOutBeforeTraining) {
  const TempDir directory;
  testing::put_bytes(directory / "file", "");
  const auto no_directory = run(kSmall + directory / "file");
  EXPECT_EQ(no_directory.code, 1);
  EXPECT_THAT(no_directory.err, HasSubstr("/file"));
  std::filesystem::create_directories(directory / "out");
  testing::put_bytes(directory / "out/results.json", "{");
  const auto broken = run(kSmall + directory / "out");
  EXPECT_EQ(broken.code, 1);
  EXPECT_THAT(broken.err, HasSubstr("results.json: not a results file of `translution reproduce`"));
  EXPECT_FALSE(std::filesystem::exists(directory / "out/runs"));
}

TEST(Reproduce, SaysWhenTheLogOfAFinishedTrainingIsDamaged) {
  const TempDir directory;
  const std::string out = directory / "out";
  std::filesystem::copy(
      undisturbed().out, out,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  const auto damaged = out + "/runs/" + *testing::names_in(out + "/runs").begin();
  const auto log = get_bytes(damaged + "/metrics.jsonl");
  testing::put_bytes(damaged + "/metrics.jsonl", log.substr(0, log.size() / 2));
  const auto outcome = run(kSmall + out);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(damaged + ": its log does not have top1 on "));
  EXPECT_THAT(outcome.err,
              HasSubstr(" at step 4, its last; remove the directory to train it again"));
}

bool all_finished(const std::string& out) {
  if (!std::filesystem::exists(out + "/results.json")) return false;
  const auto rows = json::parse(get_bytes(out + "/results.json")).at("rows");
  if (rows.empty()) return false;  // nothing is measured yet
  for (const auto& training : rows.front().at("runs"))
    if (!training.at("finished")) return false;
  return true;
}

// The report is written after the last training, and takes a second or more here.
TEST(Reproduce, ASignalStopsTheReport) {
  const TempDir directory;
  const std::string out = directory / "out",
                    call =
                        "reproduce mnist --rows 2 --data digits:10000 --train-limit 16 --steps "
                        "1 --batch 16 --threads 1 --out " +
                        out;
  const Started program(call);
  for (int i = 0; i < 60000 && !all_finished(out); ++i) {
    EXPECT_FALSE(std::filesystem::exists(out + "/report.html"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  program.send(SIGINT);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NE(program.wait().code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_FALSE(std::filesystem::exists(out + "/report.html"));
  EXPECT_TRUE(all_finished(out));

  const auto again = run(call);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr(out + "/report.html\n"));
  EXPECT_THAT(get_bytes(out + "/report.html"), HasSubstr("Confusion on dynamic"));
}

TEST(Reproduce, AReportHasAllRowsOfTheResults) {
  const TempDir directory;
  const std::string call =
      "reproduce position_encodings --steps 2 --batch 8 --train-limit 16 --eval-limit 8 --threads "
      "1 --out " +
      directory / "out";
  EXPECT_EQ(run(call + " --rows 1").code, 0);
  EXPECT_EQ(run(call + " --rows 7").code, 0);
  const auto report = get_bytes(directory / "out/report.html");
  EXPECT_THAT(report, HasSubstr("self_attention_no_pos"));
  EXPECT_THAT(report, HasSubstr("rotary"));
}

// ------------------------------------------------------------------------------------- results

TEST(ResultsCommand, FillsInAndChecks) {
  const TempDir directory;
  const std::string& out = undisturbed().out;
  std::filesystem::create_directories(directory / "results");
  std::filesystem::copy(out + "/results.json", directory / "results/mnist.json");
  std::filesystem::copy(out + "/curves", directory / "results/mnist");
  const std::string document = directory / "doc.md";
  testing::put_bytes(document, "<!-- results mnist -->\n<!-- end of results -->\n");
  const std::string arguments =
      "results " + directory / "results" + " " + document + " --pictures " + directory / "pictures";
  std::filesystem::create_directories(directory / "pictures");
  const auto missing = run(arguments + " --check");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("mnist.svg: differs from "));
  const std::string picture = directory / "pictures/mnist.svg";
  EXPECT_EQ(run(arguments).out, picture + "\n" + document + "\n");
  EXPECT_THAT(get_bytes(document), HasSubstr(get_bytes(out + "/table.md")));
  EXPECT_THAT(get_bytes(picture), HasSubstr(">1 self_attention<"));
  EXPECT_THAT(get_bytes(picture), HasSubstr(">dashed: digits that stand still<"));
  EXPECT_EQ(run(arguments + " --check").code, 0);

  testing::put_bytes(document, "<!-- results mnist -->\n99.5\n<!-- end of results -->\n");
  const auto stale = run(arguments + " --check");
  EXPECT_EQ(stale.code, 1);
  EXPECT_THAT(stale.err, HasSubstr("doc.md: differs from "));
}

TEST(Reproduce, GivesTrainingsInBf16OtherNames) {
  const TempDir directory;
  const std::string small =
      "reproduce mnist --rows 2 --steps 2 --batch 8 --train-limit 16 --eval-limit 8 --threads 1 "
      "--out ";
  const std::string out = directory / "out";
  const auto outcome = run(small + out + " --precision bf16");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(run(small + out).code, 0);
  const auto rows = json::parse(get_bytes(out + "/results.json"))["rows"];
  ASSERT_EQ(rows.size(), 2);
  const auto& half = rows[rows[0]["runs"][0]["precision"] == "bf16" ? 0 : 1];
  const auto& single = rows[rows[0]["runs"][0]["precision"] == "bf16" ? 1 : 0];
  EXPECT_EQ(half["runs"][0]["precision"], "bf16");
  EXPECT_EQ(single["runs"][0]["precision"], "float32");
  EXPECT_NE(half["runs"][0]["name"], single["runs"][0]["name"]);
  EXPECT_THAT(half["cuts"].get<std::vector<std::string>>(),
              ::testing::Contains("precision bf16 instead of float32"));
  EXPECT_THAT(half["command"].get<std::string>(), HasSubstr(" --precision bf16"));
  const std::string run_directory = out + "/runs/" + half["runs"][0]["name"].get<std::string>();
  EXPECT_EQ(json::parse(get_bytes(run_directory + "/run.json"))["precision"], "bf16");
  EXPECT_THAT(get_bytes(out + "/table.md"), HasSubstr("precision bf16 instead of float32"));
}

TEST(ResultsCommand, TakeMergesIntoExistingResults) {
  const TempDir directory;
  const std::string results = directory / "results", document = directory / "doc.md";
  std::filesystem::create_directories(results);
  testing::put_bytes(document, "<!-- results mnist -->\n<!-- end of results -->\n");
  const std::string call = "results " + results + " " + document + " --take ";
  for (const char* steps : {"4", "2"})
    EXPECT_EQ(run("reproduce mnist --rows 1 --batch 8 --train-limit 16 --eval-limit 8 --threads 1 "
                  "--steps " +
                  std::string(steps) + " --out " + directory / steps)
                  .code,
              0);
  EXPECT_EQ(run(call + directory / "4").code, 0);
  const auto second = run(call + directory / "2");
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(json::parse(get_bytes(results + "/mnist.json"))["rows"].size(), 2);
  EXPECT_EQ(testing::names_in(results + "/mnist").size(), 4);
  EXPECT_THAT(get_bytes(document), HasSubstr("4 steps instead of 20 passes"));
  EXPECT_THAT(get_bytes(document), HasSubstr("2 steps instead of 20 passes"));

  const auto before = get_bytes(results + "/mnist.json");
  const auto missing = run(call + directory / "nowhere");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("nowhere/results.json"));
  EXPECT_EQ(get_bytes(results + "/mnist.json"), before);
}

TEST(ResultsCommand, RefusesAFigureThatIsInNoLog) {
  const TempDir directory;
  const std::string& out = undisturbed().out;
  std::filesystem::create_directories(directory / "results");
  std::filesystem::copy(out + "/curves", directory / "results/mnist");
  auto results = json::parse(get_bytes(out + "/results.json"));
  results["rows"][1]["figures"][2]["ours"] = 99.5;
  testing::put_bytes(directory / "results/mnist.json", results.dump());
  testing::put_bytes(directory / "doc.md", "");
  const auto outcome = run("results " + directory / "results" + " " + directory / "doc.md");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(".csv: expected top1 99.5 on dynamic at step 4 as in "));
}

}  // namespace
}  // namespace translution
