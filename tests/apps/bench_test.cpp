#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/apps/program.h"

namespace translution {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kOp = "bench op --grid 3x3 --dim 12 --heads 3 --batch 2 --repeats 2 ";
const std::string kViT =
    "--model vit-a/12 --method alpha_translution --image-size 24 --channels 1 --classes 10";

void expect_positive(const json& result, const std::vector<std::string>& keys) {
  for (const auto& key : keys) {
    ASSERT_TRUE(result[key].is_number()) << key << " in " << result;
    EXPECT_GT(result[key], 0) << key;
    EXPECT_TRUE(std::isfinite(result[key].get<double>())) << key;
  }
}

// ------------------------------------------------------------------------------------- op

class BenchOp : public testing::TestWithParam<std::string> {};

TEST_P(BenchOp, MeasuresAndAgreesWithThePortableImplementation) {
  const json result = json_of(kOp + "--dim-head 4 " + GetParam());
  expect_positive(result, {"forward_ms", "forward_ms_median", "backward_ms", "backward_ms_median",
                           "gflops", "sgemm_gflops", "sgemm_gflops_median", "fraction_of_sgemm",
                           "fraction_useful", "weight_bandwidth_gbs", "threads"});
  EXPECT_GE(result["peak_bytes"], 0);
  EXPECT_GE(result["max_error"], 0);
  EXPECT_LT(result["max_error"], 1e-4);
  const bool portable = GetParam() == "--method convolution";
  EXPECT_EQ(result["implementation"], portable ? "portable" : "fused");
  EXPECT_EQ(result["batch"], 2);
  EXPECT_EQ(result["repeats"], 2);
  EXPECT_LE(result["forward_ms"], result["forward_ms_median"]);
  EXPECT_GE(result["sgemm_gflops"], result["sgemm_gflops_median"]);
}

INSTANTIATE_TEST_SUITE_P(Layers, BenchOp,
                         testing::Values("--cls", "--causal --roles v --threads 1",
                                         "--method alpha_translution --relative-dim 2 --cls",
                                         "--method gated_position --cls", "--method convolution"));

TEST(BenchOpFigures, CountRecomputationAsLost) {
  const std::string wide =
      "bench op --grid 3x3 --dim 64 --heads 1 --dim-head 64 --batch 2 --repeats 2";
  const json saved = json_of(wide);
  setenv("TRANSLUTION_WORKSPACE", "0", /*overwrite=*/1);
  const json recomputed = json_of(wide);
  unsetenv("TRANSLUTION_WORKSPACE");
  // Queries and keys of 81 pairs are recomputed; forward has three roles for 81 pairs and an output
  // projection for 9 tokens.
  constexpr double kShare = 2.0 * 81 / (3 * 81 + 9);
  EXPECT_NEAR(recomputed["recomputed"].get<double>() - saved["recomputed"].get<double>(), kShare,
              1e-6);
  const auto share_useful = [](const json& result) {
    return result["fraction_useful"].get<double>() / result["fraction_of_sgemm"].get<double>();
  };
  EXPECT_GT(share_useful(saved), 1.1 * share_useful(recomputed));
}

TEST(BenchOpText, HasTheFiguresWithTheirUnits) {
  const std::string text = output_of(kOp + "--dim-head 4 --cls --threads 1");
  EXPECT_THAT(text, StartsWith("translution: 3x3 tokens and a class token, 12 channels, 3 heads of "
                               "4, batch 2, 1 thread\n\n  forward "));
  for (const char* part : {" ms ", " GFLOP/s", "fraction useful", " MiB", " GB/s", "largest error"})
    EXPECT_THAT(text, HasSubstr(part));
}

class BenchPoints : public testing::TestWithParam<std::string> {};

TEST_P(BenchPoints, MeasuresALayerBetweenPoints) {
  const json result = json_of(
      "bench op --points 40 --dim 12 --heads 3 --dim-head 4 --batch 2 --repeats 2 " + GetParam());
  expect_positive(result, {"forward_ms", "backward_ms", "gflops", "sgemm_gflops",
                           "fraction_of_sgemm", "threads"});
  const bool has_matrices = GetParam().find("relative_bias") == std::string::npos;
  EXPECT_EQ(result.contains("products_ms"), has_matrices);
  if (has_matrices) expect_positive(result, {"products_ms", "products_of_sgemm"});
  EXPECT_LT(result["max_error"], GetParam().find("bf16") == std::string::npos ? 1e-4 : 2e-2);
  EXPECT_EQ(result["implementation"], "fused");
}

INSTANTIATE_TEST_SUITE_P(Layers, BenchPoints,
                         testing::Values("--radius 2 --neighbours 5", "--axes 1 --cls",
                                         "--axes 2 --method alpha_translution --precision bf16",
                                         "--method relative_bias", "--method convolution"));

TEST(BenchPointsText, NamesTheLattice) {
  const std::string text = output_of(
      "bench op --points 20 --axes 1 --neighbours 3 --dim 12 --heads 3 --dim-head 4 --batch 2 "
      "--repeats 1 --threads 1");
  EXPECT_THAT(text, StartsWith("translution: 20 points, 1 axis, radius 1, 3 neighbours, 12 "
                               "channels, 3 heads of 4, batch 2, 1 thread\n"));
  EXPECT_THAT(text, HasSubstr("rows of the lattice "));
}

// ------------------------------------------------------------------------------ precision

void expect_beside_float32(const json& result) {
  EXPECT_EQ(result["precision"], "bf16");
  expect_positive(result, {"gflops", "sgemm_gflops", "bf16_gemm_gflops", "bf16_gemm_gflops_median",
                           "fraction_of_bf16", "float32_ms", "speedup_over_float32"});
  EXPECT_FALSE(result["bf16_products"].get<std::string>().empty());
  EXPECT_NEAR(result["fraction_of_bf16"].get<double>(),
              result["gflops"].get<double>() / result["bf16_gemm_gflops"].get<double>(), 1e-9);
}

TEST(BenchPrecision, ComparesALayerWithFloat32InTheSameRun) {
  for (const char* method : {"translution", "alpha_translution", "rotary", "convolution"}) {
    const json result = json_of(kOp + "--dim-head 4 --precision bf16 --method " + method);
    expect_beside_float32(result);
    EXPECT_LT(result["max_error"], 2e-2) << method;
    const double both = result["forward_ms"].get<double>() + result["backward_ms"].get<double>();
    // The best time of both together is at least the sum of the best times.
    EXPECT_LE(result["speedup_over_float32"].get<double>(),
              result["float32_ms"].get<double>() / both + 1e-9)
        << method;
  }
}

TEST(BenchPrecision, ComparesAStepAndText) {
  const json step = json_of("bench step --batch 2 --repeats 2 --precision bf16 " + kViT);
  expect_beside_float32(step);
  EXPECT_NEAR(step["speedup_over_float32"].get<double>(),
              step["float32_ms"].get<double>() / step["step_ms"].get<double>(), 1e-9);
  const json text = json_of(
      "bench generate --model gpt-1x12x2x16-8 --vocabulary 11 --repeats 2 --precision bf16");
  expect_beside_float32(text);
  EXPECT_NEAR(text["speedup_over_float32"].get<double>(),
              text["float32_ms"].get<double>() / text["cached_text_ms"].get<double>(), 1e-9);
  EXPECT_LT(text["max_error"], 2e-2);
}

TEST(BenchPrecision, Float32HasNoComparison) {
  const json result = json_of(kOp + "--dim-head 4");
  EXPECT_EQ(result["precision"], "float32");
  EXPECT_FALSE(result.contains("speedup_over_float32"));
  EXPECT_FALSE(result.contains("bf16_gemm_gflops"));
}

TEST(BenchPrecision, SaysHowBfloat16IsMultiplied) {
  const std::string text = output_of(kOp + "--dim-head 4 --threads 1 --precision bf16");
  EXPECT_THAT(text, HasSubstr(" 1 thread\nbfloat16 products: "));
  EXPECT_THAT(text, HasSubstr("speed-up over float32 "));
  const auto plain =
      run(kOp + "--dim-head 4 --threads 1 --precision bf16", "TRANSLUTION_ISA=scalar");
  EXPECT_THAT(plain.out, HasSubstr("bfloat16 products: rounded operands, multiplied in float32 ("));
}

// ----------------------------------------------------------------------------------- step

class BenchStep : public testing::TestWithParam<std::string> {};

TEST_P(BenchStep, Measures) {
  const json result = json_of("bench step --batch 2 --repeats 2 " + GetParam());
  expect_positive(result, {"step_ms", "step_ms_median", "samples_per_s", "gflops", "sgemm_gflops",
                           "fraction_of_sgemm", "threads"});
  EXPECT_GE(result["peak_bytes"], 0);
  EXPECT_NEAR(result["samples_per_s"].get<double>(), 2e3 / result["step_ms"].get<double>(), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Models, BenchStep,
                         testing::Values(kViT, "--model gpt-a-4 --vocabulary 11"));

TEST(BenchStepText, NamesTheModel) {
  const std::string text = output_of("bench step --batch 2 --repeats 1 --threads 1 " + kViT);
  EXPECT_THAT(text, StartsWith("vit-a/12 with alpha_translution: batch 2, 1 thread\n\n  step "));
  EXPECT_THAT(text, HasSubstr(" samples/s\n"));
}

// ------------------------------------------------------------------------- help and errors

TEST(BenchHelp, GoesToStandardErrorWithoutOpOrStep) {
  const auto outcome = run("bench");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("Usage: translution bench COMMAND [OPTIONS]\n"));
}

TEST(BenchHelp, HasExamplesAndExplainsSgemm) {
  const std::string op = output_of("bench op --help");
  EXPECT_THAT(op, HasSubstr("Usage: translution bench op [OPTIONS]\n"));
  EXPECT_THAT(op, HasSubstr("best counts"));
  EXPECT_THAT(output_of("bench step -h"), HasSubstr("Examples:\n  translution bench step "));
}

const WrongCall kWrongCalls[] = {
    {"bench opp", "unknown command 'opp'; did you mean 'op'?"},
    {"bench op step", "unexpected argument 'step'; see translution bench op --help"},
    {"bench --batch 4 op", "option --batch goes after the command"},
    {"bench op --grid 7y7", "--grid: expected sides such as 160, 7x7 or 4x7x7, got '7y7'"},
    {"bench op --threads 0", "--threads: expected 1 to 1024, got 0"},
    {"bench op --neighbours 3", "--neighbours: belongs to --points N"},
    {"bench op --points 9 --axes 4", "--axes: expected 1 to 3, got 4"},
    {"bench op --points 9 --grid 3x3", "--grid: belongs to tokens on a grid; leave out --points"},
    {"bench op --points 9 --causal", "--causal: belongs to tokens on a grid; leave out --points"},
    {"bench step", "--model NAME is missing; see translution bench step --help"},
};

TEST(BenchWrongCalls, GetOneLineAndCodeTwo) {
  for (const auto& call : kWrongCalls) expect_refused(call);
}

}  // namespace
}  // namespace translution
