// What is done with a trained model: eval, predict, report, generate.

#include <gmock/gmock.h>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "translution/data/digits.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"
#include "translution/report/png.h"

namespace translution {
namespace {

using testing::HasSubstr;

using Trained = SmallRun;

TEST_F(Trained, EvalSaysWhatTheLogSaysAtTheEnd) {
  const auto outcome = run("eval --json --batch 16 " + undisturbed());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto results = nlohmann::json::parse(outcome.out).at("results");
  const auto log = log_of(undisturbed());
  for (size_t i = log.size() - 2; i < log.size(); ++i) {
    EXPECT_EQ(log[i].step, kSmallSteps);
    for (const auto& [name, value] : log[i].values)
      EXPECT_EQ(results.at(log[i].split).at(name), value) << log[i].split << " " << name;
  }
}

TEST_F(Trained, EvalTakesOtherDataAndRefusesWhatDoesNotFit) {
  const auto more = run("eval --json --eval-limit 5 --eval-on static " + undisturbed());
  EXPECT_EQ(nlohmann::json::parse(more.out).at("results").at("static").at("count"), 5);
  const auto other = run("eval --canvas 84 " + undisturbed());
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr(" does not fit the model of "));
}

TEST_F(Trained, PredictSortsTheClassesOfAPicture) {
  Image digit{kDigitSide, kDigitSide, 1, std::vector<uint8_t>(kDigitSide * kDigitSide)};
  Random random({7});
  draw_digit(4, random, digit.pixels.data());
  write_file_atomically(path("four.png"), png_bytes(digit));
  const auto result = json_of("predict " + undisturbed() + " " + path("four.png")).at(0);
  EXPECT_EQ(result.at("file"), path("four.png"));
  const auto& classes = result.at("classes");
  ASSERT_EQ(classes.size(), 5);
  double sum = 0;
  for (size_t k = 0; k < classes.size(); ++k) {
    const double share = classes[k].at("probability");
    EXPECT_GT(share, 0);
    EXPECT_LE(share, k > 0 ? classes[k - 1].at("probability").get<double>() : 1);
    sum += share;
  }
  EXPECT_LT(sum, 1);
  EXPECT_GT(sum, 0.5);  // the likeliest five of ten
}

TEST_F(Trained, PredictSaysWhatIsWrongWithAPicture) {
  write_file_atomically(path("no.png"), "this is text");
  for (const char* name : {"no.png", "missing.png"}) {
    const auto outcome = run("predict " + undisturbed() + " " + path(name));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("translution: " + path(name) + ": "));
  }
}

TEST_F(Trained, ReportHasAllSections) {
  const std::string out = path("report.html");
  EXPECT_EQ(output_of("report " + undisturbed() + " --out " + out), out + "\n");
  const auto page = read_file(out);
  for (const char* title : {"Summary", "Curves", "Confusion", "Samples", "Attention maps",
                            "Norms of the learned matrices by offset", "Configuration"})
    EXPECT_THAT(page, HasSubstr(std::string(">") + title)) << title;
  EXPECT_THAT(page, testing::Not(HasSubstr("src=\"http")));
}

TEST_F(Trained, OfNothingIsRefusedInOneLine) {
  for (const char* command : {"eval ", "report ", "generate "}) {
    const auto outcome = run(command + path("nothing"));
    EXPECT_NE(outcome.code, 0) << command;
    EXPECT_THAT(outcome.err, HasSubstr(path("nothing"))) << command;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  const auto outcome = run("generate " + undisturbed());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("text wants a gpt model"));
}

TEST_F(Trained, GenerateMakesTheSameTextForTheSameSeed) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "the quick brown fox\n";
  write_file_atomically(path("fox.txt"), text);
  EXPECT_EQ(run("data text " + path("fox.txt") + " --out " + path("tokens")).code, 0);
  const auto outcome = run("train --data tokens:" + path("tokens") +
                           " --model gpt-a-16 --method alpha_translution " +
                           "--steps 24 --batch 8 --threads 1 --eval-limit 4 --out " + path("gpt"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto generate = [&](const char* more) {
    return output_of("generate " + path("gpt") + " --tokens 29 --prompt 'the quick' " + more);
  };
  EXPECT_EQ(generate("--temperature 0"), "the quick brown fox\nthe quick brown fo\n");
  EXPECT_EQ(generate("--temperature 2 --seed 3"), generate("--temperature 2 --seed 3"));
  EXPECT_NE(generate("--temperature 2 --seed 3"), generate("--temperature 2 --seed 4"));
}

}  // namespace
}  // namespace translution
