// Models of points through the program.

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "translution/core/error.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"
#include "translution/io/safetensors.h"

namespace translution {
namespace {

using ::testing::HasSubstr;

class CloudRun : public SmallRun {
 protected:
  // Uses all random numbers: placement, sample order, dropout. `more` replaces what it names.
  std::string train_points(const std::string& name, const std::string& more) const {
    const std::pair<std::string, std::string> usual[] = {
        {"--train-limit", "48"},   {"--eval-limit", "16"},    {"--canvas", "42"},
        {"--model", "cloud-tiny"}, {"--train-on", "dynamic"}, {"--placement", "fresh"},
        {"--batch", "16"},         {"--neighbours", "8"},     {"--dropout", "0.1"},
        {"--steps", "6"},          {"--save-every", "2"},     {"--log-every", "2"},
        {"--threads", "1"}};
    std::string arguments = "train --data digits-points --out " + path(name) + " " + more;
    for (const auto& [option, value] : usual)
      if (more.find(option + " ") == std::string::npos) arguments += " " + option + " " + value;
    return arguments;
  }
  std::string trained_points(const std::string& name, const std::string& more = "") const {
    const auto outcome = run(train_points(name, more));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return path(name);
  }
};

TEST_F(CloudRun, HasTheSameBitsAfterResumeAndOnMoreThreads) {
  const auto whole = trained_points("whole");
  EXPECT_EQ(run(train_points("part", "--steps 2 --schedule constant")).code, 0);
  const auto constant = trained_points("constant", "--schedule constant");
  const auto outcome = run(train_points("part", "--schedule constant --resume auto"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(weights_of(path("part")), weights_of(constant));
  EXPECT_THAT(outcome.err, HasSubstr("resumed after step 2"));
  EXPECT_EQ(weights_of(trained_points("threads", "--threads 2 --workers 2")), weights_of(whole));
  EXPECT_NE(weights_of(constant), weights_of(whole));
}

TEST_F(CloudRun, IsEvaluatedAsInTheLogAndDrawn) {
  const auto directory = trained_points("run", "--method alpha_translution --eval-on static");
  const auto eval = [&](const std::string& options) {
    const auto outcome = run("eval --json " + options + directory);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["results"]["static"];
  };
  const auto result = eval("--batch 16 ");
  const auto last = log_of(directory).back();
  EXPECT_EQ(last.split, "static");
  for (const auto& [name, value] : last.values)
    EXPECT_EQ(result[name].get<double>(), value) << name;
  const auto bf16 = eval("--precision bf16 ");
  EXPECT_NEAR(bf16["loss"].get<double>(), result["loss"].get<double>(), 0.05);
  EXPECT_EQ(run("report " + directory + " --out " + path("report.html")).code, 0);
  const auto page = read_file(path("report.html"));
  EXPECT_THAT(page, HasSubstr("Attention of the class token"));
  EXPECT_THAT(page, HasSubstr("layer 2, head 2, point 1: "));
}

TEST_F(CloudRun, HasTheParametersThatInfoCounts) {
  for (const char* method : {"translution", "alpha_translution", "convolution", "self_attention"}) {
    const std::string options = std::string("--learn-spacing on --radius 1 --method ") + method;
    const auto directory = trained_points(method, "--steps 1 " + options);
    int64_t count = 0;
    const auto file = load_safetensors(directory + "/checkpoints/last/model.safetensors");
    for (const auto& [name, tensor] : file.tensors) count += tensor.numel();
    const auto info =
        json_of("info --model cloud-tiny --axes 2 --channels 1 --classes 10 --json " + options)[0];
    EXPECT_EQ(info["parameters"].get<int64_t>(), count) << method;
    EXPECT_GT(info["forward_flops"].get<double>(), 0);
  }
}

TEST_F(CloudRun, StartsFromAnotherLatticeAndMethod) {
  const auto from = trained_points("from", "--steps 1 --radius 1");
  const auto wider = run(train_points("wider", "--steps 1 --radius 2 --from " + from));
  EXPECT_EQ(wider.code, 0) << wider.err;
  EXPECT_THAT(wider.out, HasSubstr("radius 2 instead of 1"));
  const auto bias = run(train_points("bias", "--steps 1 --method relative_bias --from " + from));
  EXPECT_EQ(bias.code, 0) << bias.err;
}

// Numbers around -400 that grow with the size of a cloud of up to 5 points.
std::string numbers_text(int count) {
  std::string text = "axes 3\ntargets numbers\nfeatures charge\n";
  for (int cloud = 0; cloud < count; ++cloud) {
    const int points = 1 + cloud % 5;
    text += detail::join("cloud ", -400 - 10 * points, " ", points, "\n");
    for (int p = 0; p < points; ++p)
      text += detail::join(0.5 * p, " ", 0.25 * cloud, " ", 0.1 * p * p, " ", 1 + p % 2, "\n");
  }
  return text;
}

TEST_F(CloudRun, PredictsNumbersInTheirUnit) {
  std::filesystem::create_directories(path("data"));
  write_file_atomically(path("data/train.txt"), numbers_text(40));
  write_file_atomically(path("data/val.txt"), numbers_text(10));
  for (const char* loss : {"squared", "absolute"}) {
    const auto outcome = run("train --data points:" + path("data") +
                             " --model cloud-tiny --distances on --steps 30 "
                             "--batch 20 --lr 3e-3 --eval-every 15 --threads 1 --number-loss " +
                             loss + " --out " + path(loss));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::vector<double> errors;
    for (const auto& entry : log_of(path(loss)))
      for (const auto& [name, value] : entry.values)
        if (name == "mae") errors.push_back(value);
    ASSERT_EQ(errors.size(), 2u);
    EXPECT_LT(errors[1], 12) << "the mean alone is wrong by 12";
    EXPECT_GT(errors[0], 0.1) << "not in standard deviations";
    const auto eval = run("eval --json " + path(loss));
    EXPECT_EQ(nlohmann::json::parse(eval.out)["results"]["val"]["mae"].get<double>(), errors[1]);
    const auto report = run("report " + path(loss) + " --out " + path("report.html"));
    EXPECT_EQ(report.code, 0) << report.err;
    EXPECT_THAT(read_file(path("report.html")), HasSubstr("error on val"));
  }
}

// Molecules with 1 to 4 atoms of hydrogen around one of carbon.
std::string molecules_list(int count) {
  std::string text;
  for (int m = 0; m < count; ++m) {
    const int hydrogen = 1 + m % 4;
    text += detail::join(m, ".xyz ", 1 + hydrogen, " ", -100 - 75 * hydrogen, "\nC 0 0 0.1\n");
    for (int h = 0; h < hydrogen; ++h)
      text += detail::join("H ", 0.5 + 0.25 * h, " ", 0.01 * m, " -1e-1\n");
  }
  return text;
}

class CloudPredict : public CloudRun {
 protected:
  void write(const std::string& name, const std::string& text) const {
    write_file_atomically(path(name), text);
  }
  nlohmann::json predict(const std::string& run_and_files) const {
    const auto outcome = run("predict --json " + run_and_files);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  // The run of a short training on molecules.
  std::string trained_on_molecules(const std::string& more) const {
    write("list", molecules_list(40));
    const auto data = path("data");
    EXPECT_EQ(run("data molecules " + path("list") + " --val-share 0.25 --out " + data + more).code,
              0);
    const auto outcome =
        run("train --model cloud-tiny --distances on --steps 20 --batch 10 --data points:" + data +
            " --threads 1 --out " + path("run"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return path("run");
  }
};

TEST_F(CloudPredict, GivesTheErrorOfEvalOnTheValidationSet) {
  const auto directory = trained_on_molecules("");
  const auto predictions = predict(directory + " " + path("data/val.txt"));
  double error = 0;
  for (const auto& cloud : predictions)
    error +=
        std::abs(cloud["number"].get<double>() - std::stod(cloud["target"].get<std::string>()));
  const auto eval = nlohmann::json::parse(run("eval --json " + directory).out)["results"]["val"];
  ASSERT_EQ(predictions.size(), 10u);
  EXPECT_EQ(predictions[1]["cloud"], path("data/val.txt:2"));
  EXPECT_NEAR(error / 10, eval["mae"].get<double>(), 1e-4);
  const auto table = run("predict " + directory + " " + path("data/val.txt"));
  EXPECT_THAT(table.out, HasSubstr("target"));
}

TEST_F(CloudPredict, ReadsMoleculesAndTextWithoutTargets) {
  write("ch2.xyz", "3\nmethylene\nC 0 0 0.1\nH 0.5 0 -0.1\nH 0.75 0 -0.1\n");
  write("ch2.txt",
        "axes 3\ntargets none\nfeatures H C\ncloud 3\n0 0 0.1 0 1\n0.5 0 -0.1 1 0\n0.75 0 -0.1 1 "
        "0\n");
  write("far.xyz", "1\n\nCl 0 0 0\n");
  const auto directory = trained_on_molecules("");
  const auto both = predict(directory + " " + path("ch2.xyz") + " " + path("ch2.txt"));
  EXPECT_EQ(both[0]["number"], both[1]["number"]);
  EXPECT_FALSE(both[0].contains("target"));
  EXPECT_THAT(run("predict " + directory + " " + path("far.xyz")).err,
              HasSubstr("far.xyz: expected atoms with the features H C, got Cl"));
  write("data/val.txt", "axes 3\ntargets none\nfeatures H C\ncloud 1\n0 0 0 1 0\n");
  EXPECT_THAT(run("eval " + directory).err, HasSubstr("val.txt: expected 'targets classes' or "
                                                      "'targets numbers' to train or evaluate on"));
}

TEST_F(CloudPredict, NamesTheClassesOfDigits) {
  const auto directory = trained_points("digits");
  write("a.txt",
        "axes 2\ntargets none\nfeatures brightness\ncloud 2\n1 2 0.5\n3 4 1\ncloud 1\n1 1 1\n");
  const auto clouds = predict(directory + " " + path("a.txt"));
  ASSERT_EQ(clouds.size(), 2u);
  EXPECT_EQ(clouds[1]["points"], 1);
  ASSERT_EQ(clouds[0]["classes"].size(), 5u);
  EXPECT_GE(clouds[0]["classes"][0]["probability"], clouds[0]["classes"][1]["probability"]);
  write("b.txt", "axes 3\ntargets none\ncloud 1\n0 0 0\n");
  EXPECT_THAT(run("predict " + directory + " " + path("b.txt")).err,
              HasSubstr("b.txt: expected points with 2 axes, got 3"));
  write("c.txt", "axes 2\ntargets none\nfeatures red\ncloud 1\n0 0 0\n");
  EXPECT_THAT(run("predict " + directory + " " + path("c.txt")).err,
              HasSubstr("c.txt: expected 1 feature: brightness, got 1 feature: red"));
}

TEST_F(CloudRun, RefusesWhatDoesNotFit) {
  const auto refusal = [&](const std::string& more) {
    const auto outcome = run(train_points("x", more));
    EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refusal("--spacing 0"), HasSubstr("model: expected a positive spacing"));
  EXPECT_THAT(refusal("--axes 3"), HasSubstr("digits-points does not fit cloud-tiny: expected "
                                             "points with 3 axes and 1 feature in 10 classes, got "
                                             "points with 2 axes and 1 feature in 10 classes"));
  EXPECT_THAT(refusal("--model vit-a/12"),
              HasSubstr("neighbours does not apply to vit-a/12; it belongs to Points (cloud)"));
  EXPECT_THAT(refusal("--patch-size 2"), HasSubstr("patch-size"));
  EXPECT_THAT(
      run("train --data digits-points --model vit-a/12 --out " + path("x")).err,
      HasSubstr("vit-a/12: expected images, got points (digits-points); use a cloud model"));
  EXPECT_THAT(run("train --data digits:20 --model cloud-a --out " + path("x")).err,
              HasSubstr("cloud-a: expected points, got images (digits:20); use a vit model"));
  EXPECT_FALSE(std::filesystem::exists(path("x")));
}

}  // namespace
}  // namespace translution
