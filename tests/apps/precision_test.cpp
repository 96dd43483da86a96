// The option --precision.

#include <gmock/gmock.h>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "tests/data/pictures.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"
#include "translution/train/checkpoint.h"

namespace translution {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// Without the number of steps, which a resumed run raises.
const std::string kShort =
    "train --data digits:64 --canvas 42 --model vit-2x24x2x32/21 --method alpha_translution "
    "--schedule constant --batch 16 --save-every 2 --log-every 1 --eval-limit 32 ";

class PrecisionOption : public SmallRun {
 protected:
  Outcome train(const std::string& name, const std::string& more) const {
    auto outcome = run(kShort + more + " --out " + path(name));
    EXPECT_EQ(outcome.code, 0) << more << ": " << outcome.err;
    return outcome;
  }
  Outcome train_in_bf16(const std::string& name) const {
    return train(name, "--precision bf16 --steps 4 --threads 1");
  }
  json evaluated(const std::string& run_path, const std::string& more = "") const {
    const auto outcome = run("eval --json --batch 16 " + run_path + " " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
};

TEST_F(PrecisionOption, IsRecordedBesideFloat32Weights) {
  EXPECT_THAT(train_in_bf16("run").out, HasSubstr("\nbfloat16 products: "));
  EXPECT_THAT(read_file(path("run/config.toml")), HasSubstr("precision = \"bf16\"\n"));
  const auto checkpoint = load_checkpoint(path("run"));
  EXPECT_EQ(checkpoint.content.state.at("training").at("precision"), "bf16");
  EXPECT_FALSE(checkpoint.content.state.at("config").contains("precision"));
  for (const auto& [name, tensor] : checkpoint.content.model)
    EXPECT_EQ(tensor.scalar_type(), torch::kFloat) << name;
  const auto log = read_file(path("run/metrics.jsonl"));
  EXPECT_THAT(log, HasSubstr("\"share_of_bf16\":"));
  EXPECT_THAT(log, Not(HasSubstr("share_of_sgemm")));
}

TEST_F(PrecisionOption, IsNotRecordedForFloat32) {
  EXPECT_THAT(read_file(undisturbed() + "/config.toml"), Not(HasSubstr("precision")));
  EXPECT_FALSE(load_manifest(undisturbed()).state.at("training").contains("precision"));
  EXPECT_THAT(read_file(undisturbed() + "/metrics.jsonl"), HasSubstr("\"share_of_sgemm\":"));
  EXPECT_EQ(weights_of(trained("run", "--precision float32")), weights_of(undisturbed()));
}

TEST_F(PrecisionOption, ComesFromAConfigurationFile) {
  train_in_bf16("run");
  const auto again =
      run("train --config " + path("run/config.toml") + " --threads 1 --out " + path("again"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(weights_of(path("again")), weights_of(path("run")));
  train("float32", "--steps 4 --threads 1");
  EXPECT_NE(weights_of(path("run")), weights_of(path("float32")));
}

TEST_F(PrecisionOption, MayChangeOnResumeWithANotice) {
  train_in_bf16("run");
  const auto notice = [&](const std::string& more) {
    return train("run", "--resume auto --threads 1 " + more).err;
  };
  EXPECT_THAT(notice("--steps 6 --precision bf16"), Not(HasSubstr("precision")));
  EXPECT_THAT(notice("--steps 8"), HasSubstr("resume with changed settings: steps 8 (was 6), "
                                             "precision float32 (was bf16)\n"));
  EXPECT_THAT(notice("--steps 9"), Not(HasSubstr("precision")));
  EXPECT_THAT(notice("--steps 10 --precision bf16"),
              HasSubstr("resume with changed settings: steps 10 (was 9), "
                        "precision bf16 (was float32)\n"));
}

TEST_F(PrecisionOption, AResumedRunGivesTheSameBits) {
  train_in_bf16("complete");
  train("parts", "--precision bf16 --steps 2 --threads 2");
  train("parts", "--precision bf16 --steps 4 --threads 1 --resume auto");
  EXPECT_EQ(weights_of(path("parts")), weights_of(path("complete")));
}

TEST_F(PrecisionOption, OfEvalIsTheRunsUnlessGiven) {
  train_in_bf16("run");
  const auto own = evaluated(path("run")), float32 = evaluated(path("run"), "--precision float32");
  EXPECT_EQ(own.at("precision"), "bf16");
  EXPECT_EQ(float32.at("precision"), "float32");
  const auto log = log_of(path("run"));
  // eval holds the weights in bfloat16. Its products add in another order than those with the copies
  // that training packs, and a number may then be rounded the other way.
  for (size_t i = log.size() - 2; i < log.size(); ++i)
    for (const auto& [name, value] : log[i].values)
      EXPECT_NEAR(own.at("results").at(log[i].split).at(name), value, 5e-5)
          << log[i].split << " " << name;
  EXPECT_NE(own.at("results"), float32.at("results"));
  const auto half = evaluated(undisturbed(), "--precision bf16");
  EXPECT_EQ(half.at("precision"), "bf16");
  EXPECT_EQ(evaluated(undisturbed()).at("precision"), "float32");
  const auto loss = [](const json& result) {
    return result.at("results").at("static").at("loss").get<double>();
  };
  EXPECT_NEAR(loss(half), loss(evaluated(undisturbed())), 0.05);
}

TEST_F(PrecisionOption, OfPredictAndReport) {
  write_file_atomically(path("four.png"), digit_png(4));
  const auto shares = [&](const std::string& precision) {
    return json_of("predict " + undisturbed() + " " + path("four.png") + precision);
  };
  EXPECT_EQ(shares(""), shares(" --precision float32"));
  EXPECT_NE(shares(""), shares(" --precision bf16"));
  const std::string report = path("report.html");
  EXPECT_EQ(run("report " + undisturbed() + " --precision bf16 --out " + report).code, 0);
  EXPECT_THAT(read_file(report), HasSubstr("precision"));
}

TEST_F(PrecisionOption, OfGenerate) {
  const auto outcome =
      run("train --data text --model gpt-2x24x2x32-16 --train-limit 32 --eval-limit 4 --batch 4 "
          "--steps 2 --threads 1 --precision bf16 --out " +
          path("text"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* precision : {"", " --precision float32", " --precision bf16"}) {
    const auto text = run("generate " + path("text") + " --tokens 24 --prompt ab" + precision);
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_THAT(text.out, ::testing::StartsWith("ab"));
  }
}

TEST_F(PrecisionOption, RefusesOtherNames) {
  for (const std::string& command :
       {kShort + "--out " + path("run"), "eval " + undisturbed(), "report " + undisturbed(),
        "generate " + undisturbed(), "predict " + undisturbed() + " x.png", std::string("bench op"),
        std::string("bench step --model vit-a/14"), std::string("bench generate --model gpt-a-160"),
        std::string("info --model vit-a/14")}) {
    const auto outcome = run(command + " --precision half");
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_EQ(outcome.err, "translution: unknown precision 'half'; expected one of float32, bf16\n")
        << command;
  }
}

}  // namespace
}  // namespace translution
