// Calls that need more memory than the machine has fail with one line.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "translution/io/safetensors.h"

namespace translution {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr int64_t kMostKib = 1 << 20;
const std::string kHuge = "--model vit-large/1 --method translution ";

using Memory = SmallRun;

// Expects a failure with one line and little memory used. Returns the line.
std::string refusal_of(const std::string& arguments, const std::string& errors) {
  const auto outcome = run_measured(arguments, 60, errors);
  EXPECT_EQ(outcome.code, 1) << arguments;
  EXPECT_LT(outcome.peak_kib, kMostKib) << arguments;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  return outcome.err;
}

TEST_F(Memory, IsCheckedBeforeItIsAllocated) {
  const auto said = [&](const std::string& arguments) {
    return refusal_of(arguments, path("errors"));
  };
  const std::string takes =
      " needs [0-9.]+ [A-Z]iB of memory, but only [0-9.]+ [A-Z]iB are available; ";
  EXPECT_THAT(
      said("train " + kHuge + "--data digits:64 --canvas 84 --out " + path("run")),
      MatchesRegex("translution: training vit-large/1 with translution, 64 samples at a time," +
                   takes + "choose a smaller model\n"));
  EXPECT_FALSE(fs::exists(path("run")));
  EXPECT_THAT(said("bench step --model vit-a/16 --method self_attention --batch 1048576"),
              MatchesRegex("translution: training vit-a/16 .*" + takes + "lower --batch\n"));
  EXPECT_THAT(said("bench op --grid 30x30 --batch 1048576"),
              MatchesRegex("translution: this layer" + takes + "lower --batch, .*\n"));
  EXPECT_THAT(said("bench generate --method translution --model gpt-large-60000"),
              MatchesRegex("translution: evaluating gpt-large-60000 .*" + takes + ".*\n"));
}

TEST_F(Memory, OfAHugeModelIsPrintedByInfo) {
  EXPECT_THAT(output_of("info --image-size 84 " + kHuge),
              HasSubstr("vit-large/1 with translution\n"));
}

TEST_F(Memory, IsNotAllocatedForAModelOfOtherShapes) {
  auto small = load_safetensors(undisturbed() + "/checkpoints/last/model.safetensors");
  const std::string file = path("small.safetensors");
  const auto said_of = [&](const std::string& model, const std::string& command) {
    save_safetensors(file, small.tensors,
                     {{"model", model}, {"image-size", "42x42"}, {"channels", "1"}});
    return refusal_of(command + file, path("errors"));
  };
  EXPECT_EQ(
      said_of("vit-large/1", "eval "),
      "translution: " + file + ": tensor 'cls_token' is [48], expected [1024] for vit-large/1\n");
  EXPECT_THAT(said_of("vit-4096x8192x64x8192/21", "generate "),
              HasSubstr("expected [8192] for vit-4096x8192x64x8192"));
}

TEST_F(Memory, AFailedAllocationIsReportedInOneLine) {
  const std::string file = path("sparse.txt");
  std::ofstream(file).close();
  fs::resize_file(file, int64_t{4000} << 20);
  const auto outcome =
      run("data text " + file + " --out " + path("tokens"), "prlimit --as=4000000000");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(
      outcome.err,
      MatchesRegex(
          "translution: out of memory: an allocation failed; "
          "[0-9.]+ GiB are usable in all; lower --batch, or choose a smaller model or input\n"));
}

}  // namespace
}  // namespace translution
