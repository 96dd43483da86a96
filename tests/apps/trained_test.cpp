// The commands that use a trained model: eval, predict, report, generate.

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "tests/data/pictures.h"
#include "tests/data/small_vocabulary.h"
#include "translution/io/atomic_file.h"
#include "translution/io/checksum.h"
#include "translution/io/file.h"
#include "translution/io/safetensors.h"
#include "translution/train/manifest.h"

namespace translution {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Trained : public SmallRun {
 protected:
  // A copy of the run whose newest checkpoint holds `value` among its weights.
  std::string poisoned(const std::string& run, const std::string& name, double value) const {
    fs::copy(run, path(name), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    const std::string checkpoint = path(name) + "/checkpoints/last/";
    auto content = load_safetensors(checkpoint + "model.safetensors");
    content.tensors.at("head.weight").view({-1})[3] = value;
    save_safetensors(checkpoint + "model.safetensors", content.tensors, content.metadata);
    auto manifest = parse_manifest(read_file(checkpoint + "manifest.json"));
    manifest.model.checksum = checksum_of_file(checkpoint + "model.safetensors");
    write_file_atomically(checkpoint + "manifest.json", format_manifest(manifest));
    return path(name);
  }
  // Tokens of another vocabulary than that of bytes.
  void make_other_tokens() const {
    const auto files = small_vocabulary({{"t", "h"}, {"th", "e"}});
    fs::create_directories(path("bpe"));
    write_file_atomically(path("bpe/encoder.json"), files.encoder);
    write_file_atomically(path("bpe/vocab.bpe"), files.merges);
    EXPECT_EQ(
        run("data text " + path("fox.txt") + " --bpe " + path("bpe") + " --out " + path("other"))
            .code,
        0);
  }
  void expect_not_finite(const std::string& arguments, const char* value) const {
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(std::string(": tensor 'head.weight' holds ") + value +
                                       "; expected finite numbers: use an earlier checkpoint"))
        << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
};

TEST_F(Trained, EvalGivesTheLastFiguresOfTheLog) {
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

TEST_F(Trained, EvalTakesOtherDataAndRefusesDataThatDoesNotFit) {
  const auto more = run("eval --json --eval-limit 5 --eval-on static " + undisturbed());
  EXPECT_EQ(nlohmann::json::parse(more.out).at("results").at("static").at("count"), 5);
  const auto other = run("eval --canvas 84 " + undisturbed());
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr(" does not fit vit-"));
}

TEST_F(Trained, PredictSortsTheClassesByProbability) {
  write_file_atomically(path("four.png"), digit_png(4));
  const auto result = json_of("predict " + undisturbed() + " " + path("four.png")).at(0);
  EXPECT_EQ(result.at("file"), path("four.png"));
  const auto& classes = result.at("classes");
  ASSERT_EQ(classes.size(), 5);
  double sum = 0;
  for (size_t k = 0; k < classes.size(); ++k) {
    const double probability = classes[k].at("probability");
    EXPECT_GT(probability, 0);
    EXPECT_LE(probability, k > 0 ? classes[k - 1].at("probability").get<double>() : 1);
    sum += probability;
  }
  EXPECT_LT(sum, 1);
  EXPECT_GT(sum, 0.5);  // the likeliest five of ten
}

TEST_F(Trained, PredictNamesAnUnreadableImage) {
  write_file_atomically(path("no.png"), "this is text");
  for (const char* name : {"no.png", "missing.png"}) {
    const auto outcome = run("predict " + undisturbed() + " " + path(name));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("translution: " + path(name) + ": "));
  }
}

TEST_F(Trained, NonFiniteWeightsAreRefusedByEveryCommand) {
  const auto nan = poisoned(undisturbed(), "nan", std::nan(""));
  write_file_atomically(path("digit.png"), encode_png(flat_image(28, 28, 0)));
  for (const auto& call :
       {"eval " + nan, "predict " + nan + " " + path("digit.png"),
        "report " + nan + " --out " + path("report.html"),
        "convert " + nan + " " + path("out") + " --to authors",
        "train --config " + nan + "/config.toml --resume auto --steps 13 --out " + nan})
    expect_not_finite(call, "nan");
  EXPECT_FALSE(fs::exists(path("out")));
  expect_not_finite("eval " + poisoned(undisturbed(), "inf", -INFINITY), "-inf");
}

TEST_F(Trained, NamesThatAreNotUtf8ArePrinted) {
  const std::string name = path("digit\xff.png");
  write_file_atomically(name, encode_png(flat_image(28, 28, 0)));
  const auto result = json_of("predict " + undisturbed() + " '" + name + "'").at(0);
  EXPECT_EQ(result.at("file"), path("digit\uFFFD.png"));
}

TEST_F(Trained, AFileWithoutModelOptionsIsRefused) {
  save_safetensors(path("bare.safetensors"), {{"a", torch::zeros({1})}});
  for (const char* command : {"eval ", "predict ", "generate "}) {
    const bool pictures = command[0] == 'p';
    const auto outcome = run(command + path("bare.safetensors") + (pictures ? " x.png" : ""));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err.find("--model"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run("eval " + path("bare.safetensors")).err,
            "translution: " + path("bare.safetensors") +
                ": has no model options in its metadata; `translution convert` writes a file with "
                "them\n");
}

TEST_F(Trained, ReportDrawsTheLargestStep) {
  fs::create_directories(path("far"));
  write_file_atomically(
      path("far/metrics.jsonl"),
      "{\"step\":9223372036854775807,\"epoch\":1,\"split\":\"train\",\"loss\":2}\n");
  output_of("report --curves-only " + path("far") + " --out " + path("far.html"));
  EXPECT_THAT(read_file(path("far.html")), ::testing::Not(::testing::ContainsRegex("-?nan[ h\"]")));
}

TEST_F(Trained, ReportHasAllSections) {
  const std::string out = path("report.html");
  EXPECT_EQ(output_of("report " + undisturbed() + " --out " + out), out + "\n");
  const auto page = read_file(out);
  for (const char* title : {"Summary", "Curves", "Confusion", "Samples", "Attention maps",
                            "Norms of the learned matrices by offset", "Configuration"})
    EXPECT_THAT(page, HasSubstr(std::string(">") + title)) << title;
  EXPECT_THAT(page, ::testing::Not(HasSubstr("src=\"http")));
}

TEST_F(Trained, ReportShowsTheAccuracyOnEachEvaluationSet) {
  const std::string out = path("report.html");
  EXPECT_EQ(run("report " + undisturbed() + " --out " + out).code, 0);
  const auto page = read_file(out);
  const auto evaluated = run("eval --json " + undisturbed());
  const auto results = nlohmann::json::parse(evaluated.out).at("results");
  ASSERT_EQ(results.size(), 2);
  for (const auto& [set, result] : results.items()) {
    const auto begin = page.find(">Confusion on " + set + "<"),
               end = page.find(">Samples on " + set + "<");
    ASSERT_LT(begin, end) << set;
    const int64_t count = result.at("count"),
                  right = std::lround(count * result.at("top1").get<double>());
    EXPECT_THAT(page.substr(begin, end - begin), HasSubstr(">" + std::to_string(right) + " of " +
                                                           std::to_string(count) + " correct"));
  }
}

TEST_F(Trained, AMissingRunIsReportedInOneLine) {
  for (const char* command : {"eval ", "report ", "generate "}) {
    const auto outcome = run(command + path("nothing"));
    EXPECT_NE(outcome.code, 0) << command;
    EXPECT_THAT(outcome.err, HasSubstr(path("nothing"))) << command;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_EQ(run("eval " + path("nothing")).err,
            "translution: " + path("nothing") +
                ": no such file or directory; expected a run, a checkpoint or a file of weights\n");
  const auto outcome = run("generate " + undisturbed());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("text needs a gpt model"));
}

TEST_F(Trained, GenerateMakesTheSameTextForTheSameSeed) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "the quick brown fox\n";
  write_file_atomically(path("fox.txt"), text);
  EXPECT_EQ(run("data text " + path("fox.txt") + " --out " + path("tokens")).code, 0);
  const auto outcome = run("train --data tokens:" + path("tokens") +
                           " --model gpt-6x96x3x192-16 --method alpha_translution " +
                           "--steps 24 --batch 8 --threads 1 --eval-limit 4 --out " + path("gpt"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto generate = [&](const char* more) {
    return output_of("generate " + path("gpt") + " --tokens 29 --prompt 'the quick' " + more);
  };
  EXPECT_EQ(generate("--temperature 0"), "the quick brown fox\nthe quick brown fo\n");
  EXPECT_EQ(generate("--temperature 2 --seed 3"), generate("--temperature 2 --seed 3"));
  EXPECT_NE(generate("--temperature 2 --seed 3"), generate("--temperature 2 --seed 4"));

  expect_not_finite("generate " + poisoned(path("gpt"), "nan", std::nan("")), "nan");
  make_other_tokens();
  for (const std::string command : {"generate ", "eval "}) {
    const auto other = run(command + path("gpt") + " --data tokens:" + path("other"));
    EXPECT_EQ(other.code, 2) << command;
    EXPECT_THAT(other.err,
                ::testing::ContainsRegex(": expected a .*vocabulary of 256.* got 259; choose "));
  }
  fs::rename(path("tokens"), path("moved"));
  const auto away = run("generate " + path("gpt"));
  EXPECT_EQ(away.code, 1);
  EXPECT_EQ(away.err,
            "translution: " + path("tokens") +
                ": no such directory; expected the one with the tokens: --data tokens:DIR\n");
}

}  // namespace
}  // namespace translution
