#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "apps/translution/paper/tables.h"
#include "tests/apps/program.h"
#include "tests/support/process.h"
#include "translution/core/cpu_info.h"

namespace translution {

using namespace detail;

using namespace cli;

namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// The rows of `info --paper-table`, computed once.
const json& paper_rows(const std::string& table) {
  static std::map<std::string, json> known;
  if (known.count(table) == 0) known[table] = json_of("info --paper-table " + table);
  return known.at(table);
}

json info_of(const std::string& options) {
  const json rows = json_of("info " + options);
  EXPECT_EQ(rows.size(), 1u);
  return rows.front();
}

// ------------------------------------------------------------------------------ the paper

class PaperTables : public ::testing::TestWithParam<std::string> {};

TEST_P(PaperTables, HaveTheRowsAndCountsOfThePaper) {
  const auto table = paper_table(GetParam());
  const json& rows = paper_rows(GetParam());
  ASSERT_EQ(rows.size(), table.rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& expected = table.rows[i];
    EXPECT_EQ(rows[i]["model"], expected.model.name());
    EXPECT_EQ(rows[i]["method"], name_of(kMethods, expected.model.position.method));
    EXPECT_EQ(rows[i]["parameters"], expected.parameters.value_or(rows[i]["parameters"]));
    EXPECT_EQ(rows[i]["params_paper_millions"].is_null(), !expected.printed_millions);
    EXPECT_EQ(rows[i]["agrees"].is_null(), !expected.printed_millions);
    EXPECT_EQ(rows[i]["results"].size(), expected.results.size());
    EXPECT_EQ(rows[i]["out_of_memory"], expected.out_of_memory);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PaperTables, ::testing::ValuesIn(paper_table_names()),
                         [](const auto& test) { return test.param; });

std::string label(const std::string& table, const json& row) {
  std::string text =
      table + " " + row["model"].get<std::string>() + " " + row["method"].get<std::string>();
  if (row.contains("relative_dim"))
    text += " " + row["relative_dim"].dump() + (row["shared_qkv"] ? " shared" : "");
  return text;
}

TEST(PaperTablesTogether, DifferFromThePrintedCountInFiveRows) {
  std::vector<std::string> differing;
  const auto names = paper_table_names();
  EXPECT_EQ(names.size(), 7u);
  for (const auto& name : names)
    for (const auto& row : paper_rows(name))
      if (row["agrees"] == false) differing.push_back(label(name, row));
  EXPECT_THAT(differing, ElementsAre("imagenet vit-b/32 translution",
                                     "imagenet vit-c/16 alpha_translution 8 shared",
                                     "relative_dim vit-a/56 alpha_translution 0 shared",
                                     "relative_dim vit-a/56 alpha_translution 4 shared",
                                     "gpt gpt-c-160 self_attention"));
}

TEST(PaperTableJson, HasTheOptionsThatTellRowsApart) {
  const json& encodings = paper_rows("relative_vs_absolute");
  EXPECT_EQ(encodings[2]["encoding"], "relative");
  EXPECT_EQ(encodings[3]["encoding"], "absolute");
  EXPECT_EQ(encodings[3]["params_paper_millions"], 1660.9);
  EXPECT_EQ(encodings[3]["results"]["static_dynamic"], 11.23);
  EXPECT_FALSE(encodings[3].contains("relative_dim"));
  const json& widths = paper_rows("relative_dim");
  EXPECT_EQ(widths[1]["relative_dim"], 2);
  EXPECT_EQ(widths[1]["shared_qkv"], false);
  const json& embeddings = paper_rows("input_position_embedding");
  EXPECT_EQ(embeddings[0]["input_embedding"], false);
  EXPECT_EQ(embeddings[1]["input_embedding"], true);
}

TEST(PaperTableText, MarksRowsThatDifferOrRanOutOfMemory) {
  const std::string text = output_of("info --paper-table imagenet");
  const auto differing = lines_with(text, "differs");
  ASSERT_EQ(differing.size(), 2u);
  EXPECT_THAT(differing[0], StartsWith("  vit-b/32  translution          233,056,360      223.1 "));
  EXPECT_EQ(lines_with(text, "out of memory").size(), 4u);
  EXPECT_THAT(text, HasSubstr("21 of 23 printed counts agree with ours; 4 rows have none.\n"));
}

TEST(PaperTableText, AlignsColumns) {
  const auto lines = lines_with(output_of("info --paper-table relative_dim"), "vit-a/56  ");
  ASSERT_EQ(lines.size(), 11u);
  for (const auto& line : lines) EXPECT_EQ(line.find('.', 60), lines.front().find('.', 60)) << line;
}

// ----------------------------------------------------------------------------------- info

TEST(InfoPrecision, CountsBytesOfBfloat16) {
  const std::string model =
      "--model vit-a/12 --image-size 84 --channels 1 --classes 10 --batch 8 --precision ";
  const json single = info_of(model + "float32"), half = info_of(model + "bf16");
  EXPECT_EQ(single["precision"], "float32");
  EXPECT_EQ(single["packed_bytes"], 0);
  EXPECT_EQ(half["precision"], "bf16");
  EXPECT_EQ(half["weight_bytes"], single["weight_bytes"]);
  EXPECT_EQ(half["kept_bytes"].get<int64_t>(), single["kept_bytes"].get<int64_t>() / 2);
  EXPECT_NEAR(half["packed_bytes"].get<double>(), single["weight_bytes"].get<double>(), 1e6);
  EXPECT_NEAR(single["evaluation_bytes"].get<double>() - half["evaluation_bytes"].get<double>(),
              single["weight_bytes"].get<double>() / 2, 1e6);
  EXPECT_NEAR(half["training_bytes"].get<double>(),
              single["training_bytes"].get<double>() + half["packed_bytes"].get<double>() -
                  half["kept_bytes"].get<double>(),
              6 * double{2 << 20})
      << "apart from the last pages of each layer's encodings";
  const std::string text = output_of("info " + model + "bf16");
  EXPECT_THAT(text, HasSubstr("vit-a/12 with translution in bf16\n"));
  for (const char* part : {"packed copies", "in both orientations", "2 per weight of a matrix",
                           "kept encodings", "2 per number"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Info, CountsTheMnistModelOfThePaper) {
  const json row = info_of(
      "--model vit-a/12 --method translution --image-size 84 --channels 1 --classes 10 --batch 4");
  EXPECT_EQ(row["parameters"], 116164138);
  EXPECT_EQ(row["table_parameters"], 6 * 3 * 172 * 192 * 192);
  EXPECT_EQ(row["other_parameters"], 116164138 - 6 * 3 * 172 * 192 * 192);
  EXPECT_EQ(row["weight_bytes"], 4 * 116164138);
  EXPECT_EQ(row["training_flops"], 3 * row["forward_flops"].get<int64_t>());
  EXPECT_GE(row["accumulator_bytes"], 8 * 4 * 4 * 50 * 192);  // eight or more of the features' size
  EXPECT_GT(row["training_bytes"],
            4 * row["weight_bytes"].get<int64_t>() + row["accumulator_bytes"].get<int64_t>());
  EXPECT_EQ(row["batch"], 4);
  EXPECT_EQ(row["tokens"], 50);
  EXPECT_EQ(row["slots_per_layer"], json(std::vector<int>(6, 172)));
  EXPECT_TRUE(row["agrees"].is_null());
  EXPECT_TRUE(row["params_paper_millions"].is_null());
}

TEST(Info, PrintsThousandsAndUnits) {
  const std::string text = output_of(
      "info --model vit-a/12 --method translution --image-size 84 --channels 1 --classes 10");
  EXPECT_THAT(text, StartsWith("vit-a/12 with translution\n"));
  EXPECT_THAT(text, HasSubstr("  parameters            116,164,138\n"));
  EXPECT_THAT(text, HasSubstr("    attention tables    114,130,944\n"));
  EXPECT_THAT(text, HasSubstr("50  7x7 patches and a class token\n"));
  EXPECT_THAT(text, HasSubstr("464,656,552  443.13 MiB\n"));
  EXPECT_THAT(text, HasSubstr(" at batch 1\n"));
}

TEST(Info, ReadsGpt) {
  const json row = info_of("--model gpt-a-160 --method alpha_translution --vocabulary 50257");
  EXPECT_EQ(row["parameters"], 23734656);
  EXPECT_EQ(row["tokens"], 160);
  EXPECT_EQ(row["slots_per_layer"][0], 160);
  EXPECT_LT(info_of("--model gpt-a-160 --vocabulary 100")["parameters"],
            info_of("--model gpt-a-160")["parameters"]);
}

TEST(Info, ReadsAbsoluteEncoding) {
  const json row =
      info_of("--model vit-a/12 --encoding absolute --image-size 84 --channels 1 --classes 10");
  EXPECT_EQ(row["parameters"], 1660913194);
  EXPECT_EQ(row["encoding"], "absolute");
  EXPECT_EQ(row["slots_per_layer"][0], 50 * 50);
}

TEST(Info, ReadsTheOptionsOfAlphaTranslution) {
  const std::string alpha = "--model vit-a/56 --method alpha_translution ";
  EXPECT_EQ(info_of(alpha + "--relative-dim 16 --shared-qkv off")["parameters"], 6399208);
  EXPECT_EQ(info_of(alpha + "--relative-dim 32 --mixing mean")["parameters"], 13753576);
  EXPECT_EQ(info_of(alpha + "--relative-dim=8 --rotary on")["parameters"], 5334760);
}

TEST(Info, ReadsInputEmbeddingAndMethodsWithoutOffsets) {
  const std::string mnist = "--model vit-a/12 --image-size 84 --channels 1 --classes 10 ";
  EXPECT_EQ(info_of(mnist + "--input-embedding on")["parameters"], 116173738);
  const json plain = info_of(mnist + "--method self_attention");
  EXPECT_EQ(plain["parameters"], 2706346);
  EXPECT_EQ(plain["input_embedding"], true);
  EXPECT_FALSE(plain.contains("encoding"));
  EXPECT_EQ(plain["slots_per_layer"][0], 0);
}

TEST(Info, ReadsImagesThatAreNotSquareAndMeanPooling) {
  const json row = info_of("--model vit-a/12 --image-size 84x60 --pooling mean");
  EXPECT_EQ(row["tokens"], 7 * 5);
  EXPECT_EQ(row["slots_per_layer"][0], 13 * 9);
}

TEST(Info, ReadsRolesSharingAndKernelSize) {
  const std::string model = "--model vit-a/32 --pooling mean ";
  const json roles = info_of(model + "--roles v");
  EXPECT_EQ(roles["table_parameters"], 6 * 13 * 13 * 192 * 192);
  const json shared = info_of(model + "--sharing direction --radius 2");
  EXPECT_EQ(shared["slots_per_layer"][0], 5 * 5 + 8);
  const json window = info_of(model + "--method convolution --kernel-size 5");
  EXPECT_EQ(window["slots_per_layer"][0], 5 * 5);
}

TEST(Info, ReadsHybrids) {
  const std::string hybrid = "--model vit-a/32 --hybrid-layers 2 --rest rotary";
  EXPECT_EQ(info_of(hybrid)["slots_per_layer"], json({172, 172, 0, 0, 0, 0}));
  EXPECT_THAT(output_of("info " + hybrid), HasSubstr("172  in 2 of 6 layers\n"));
}

// ----------------------------------------------------------------------------------- plan

const std::string kPlan =
    "plan --model vit-a/12 --method translution --image-size 84 --channels 1 --classes 10 "
    "--batch 64 --gflops 100 ";

TEST(Plan, MarksTheFastestSplitThatFits) {
  const json plan = json_of(kPlan + "--machines 4 --bandwidth 8Gbit/s --memory 64");
  ASSERT_EQ(plan["splits"].size(), 3u);
  const json* fastest = &plan["splits"][0];
  for (const auto& split : plan["splits"]) {
    EXPECT_EQ(split["data"].get<int>() * split["offset"].get<int>(), 4);
    if (split["step_s"] < (*fastest)["step_s"]) fastest = &split;
  }
  for (const auto& split : plan["splits"]) EXPECT_EQ(split["recommended"], &split == fastest);
  const int64_t parameters = 116164138;
  EXPECT_EQ(plan["splits"][0]["data_bytes"], 2 * 3 * parameters);  // 2 (R - 1) / R * 4 P
  EXPECT_EQ(plan["splits"][0]["travel_s"], 2 * 3 * parameters / 1e9);
  const json small = json_of(kPlan + "--machines 4 --memory 1");
  for (const auto& split : small["splits"]) EXPECT_EQ(split["fits"], split["rank_bytes"] <= 1e9);
}

TEST(Plan, PrintsASplitPerLine) {
  const std::string text = output_of(kPlan + "--machines 4 --bandwidth 1GB/s --memory 64");
  EXPECT_EQ(lines_with(text, "recommended").size(), 1u) << text;
  for (const char* split : {" 4x1 ", " 2x2 ", " 1x4 "})
    EXPECT_EQ(lines_with(text, split).size(), 1u) << text;
  const std::string several = output_of(kPlan + "--machines 2,4,8 --memory 64");
  EXPECT_EQ(lines_with(several, "recommended").size(), 3u) << several;
  EXPECT_EQ(lines_with(output_of(kPlan + "--machines 1,2 --memory 0.001"), "no split fits").size(),
            2u);
}

// -------------------------------------------------------------------- list, help, version

TEST(List, NamesMethodsArchitecturesAndTables) {
  const json all = json_of("list");
  EXPECT_EQ(all["methods"].size(), std::size(kMethods));
  EXPECT_EQ(all["methods"][8]["name"], "translution");
  EXPECT_EQ(all["architectures"].size(),
            2 * architectures().size() + architectures(Family::cloud).size());
  EXPECT_EQ(all["architectures"][0],
            json({{"name", "vit-a"}, {"depth", 6}, {"dim", 192}, {"heads", 3}, {"mlp_dim", 768}}));
  EXPECT_EQ(all["paper_tables"].size(), paper_table_names().size());
  EXPECT_EQ(all["authors_models"].size(), 18u);
  EXPECT_EQ(
      all["authors_models"][2],
      json({{"name", "rope_tiny"}, {"method", "translution"}, {"roles", "v"}, {"rotary", "off"}}));
}

TEST(List, PrintsTheSameAsText) {
  const std::string text = output_of("list");
  EXPECT_THAT(text, HasSubstr("  translution            a full matrix per offset"));
  EXPECT_THAT(text, HasSubstr("  gpt-large      24  1024     16     4096\n"));
  EXPECT_THAT(text, HasSubstr("  imagenet                  ImageNet-1K"));
}

TEST(Version, NamesProgramAndLibTorch) {
  const auto lines = lines_with(output_of("--version"), "");
  EXPECT_THAT(lines.front(),
              ::testing::MatchesRegex("translution 0\\.1\\.0 \\(LibTorch [0-9.]+.*\\)"));
}

TEST(Version, NamesTheInstructionSets) {
  const std::string scalar = run("--version", "TRANSLUTION_ISA=scalar").out;
  EXPECT_THAT(scalar, HasSubstr("\nrow operations: scalar\n"));
  for (const Isa isa : available_isas()) {
    if (isa == Isa::scalar) continue;
    EXPECT_THAT(scalar, HasSubstr(join("\nnot used: ", name_of(kIsas, isa),
                                       " (TRANSLUTION_ISA=scalar)\n")));
  }
  EXPECT_EQ(lines_with(scalar, "not used: amx (").size(), 1u);
}

TEST(Version, LeavesTheLimitOfOnednnToTheUser) {
  if (output_of("--version").find("oneDNN") == std::string::npos) GTEST_SKIP() << "built without";
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    EXPECT_THAT(run("--version", join(variable, "=SSE41")).out, HasSubstr("oneDNN up to sse41\n"));
}

TEST(Version, RefusesAnUnknownInstructionSet) {
  const auto outcome = run("--version", "TRANSLUTION_ISA=neon");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("unknown TRANSLUTION_ISA 'neon'"));
}

// --------------------------------------------------------------------------------- errors

const WrongCall kWrongCalls[] = {
    {"inof", "unknown command 'inof'; did you mean 'info'?"},
    {"''", "unknown command ''; see translution --help"},
    {"info --model vit-a --method rotary --kernel-size -1",
     "convolution: expected an odd kernel_size of 1 or more, got -1"},
    {"foo", "unknown command 'foo'; see translution --help"},
    {"--versoin", "unknown option --versoin; did you mean --version?"},
    {"--json list", "option --json goes after the command"},
    {"plan", "--model NAME is missing; see translution plan --help"},
    {"plan --model vit-a --bandwidth 10",
     "--bandwidth: expected a number with Gbit/s or GB/s, as in 10Gbit/s, got '10'"},
    {"plan --model vit-a --machines 2,x", "--machines: expected a whole number, got 'x'"},
    {"plan --model vit-a --gflops 1 --ranks-per-machine 3",
     "ranks-per-machine: expected a power of two, got 3"},
    {"plan --model vit-a --method rotary --gflops 1 --batch 4 --machines 8",
     "machines: expected at most 4 samples times 1 slots of ranks, got 8"},
    {"list info", "unexpected argument 'info'; see translution list --help"},
    {"train --foo", "unknown option --foo; see translution train --help"},
    {"eval x --train-limit 5", "unknown option --train-limit; see translution eval --help"},
    {"eval x --train-on dynamic", "unknown option --train-on; see translution eval --help"},
    {"eval x --placement fresh", "unknown option --placement; see translution eval --help"},
    {"eval x --augment light", "unknown option --augment; see translution eval --help"},
    {"train --learning-rate 1", "unknown option --learning-rate; did you mean --lr?"},
    {"train --batch_size 1", "unknown option --batch_size; did you mean --batch?"},
    {"train --output x", "unknown option --output; did you mean --out?"},
    {"generate x --length 9", "unknown option --length; did you mean --tokens?"},
    {"generate x --max-new-tokens 9", "unknown option --max-new-tokens; did you mean --tokens?"},
    {"bench op --foo", "unknown option --foo; see translution bench op --help"},
    {"list --jsn", "unknown option --jsn; did you mean --json?"},
    {"list --json=maybe", "--json takes no value"},
    {"info", "--model NAME or --paper-table TABLE is missing; see translution info --help"},
    {"eval", "RUN is missing; see translution eval --help"},
    {"eval --foo", "unknown option --foo; see translution eval --help"},
    {"predict x", "FILE is missing; see translution predict --help"},
    {"convert a b", "--from FORMAT or --to FORMAT is missing; see translution convert --help"},
    {"info vit-a/12", "unexpected argument 'vit-a/12'; see translution info --help"},
    {"info --metod rotary --model vit-a", "unknown option --metod; did you mean --method?"},
    {"info --metod=rotary", "unknown option --metod; did you mean --method?"},
    {"info -model vit-a", "unknown option -model; did you mean --model?"},
    {"info --model", "--model: expected a value"},
    {"info --model --json", "--model: expected a value, got the option --json"},
    {"info --model vit-a --model vit-b", "--model is given more than once"},
    {"info --model vit-a/x",
     "model 'vit-a/x': expected a number from 1 to 999999 after the architecture, as in vit-a/12 "
     "or "
     "gpt-a-160, got 'x'"},
    {"info --model vit-q",
     "unknown model 'vit-q'; did you mean 'vit-a'? Append a patch size or length: "
     "vit-a/12, gpt-a-160"},
    {"info --model vit-a --method transltion",
     "unknown method 'transltion'; did you mean 'translution'?"},
    {"info --model vit-a --method 'two\nlines'",
     "unknown method 'two lines'; expected one of self_attention_no_pos, self_attention, "
     "relative_key, relative_value, relative_bias, gated_position, rotary, alpha_translution, "
     "translution, convolution"},
    {"info --model vit-a --channels many", "--channels: expected a whole number, got 'many'"},
    {"info --model vit-a --channels 1.5", "--channels: expected a whole number, got '1.5'"},
    {"info --model vit-a --image-size 84y60",
     "--image-size: expected pixels such as 84 or 84x60, got '84y60'"},
    {"info --model vit-a --image-size 85",
     "model: an image of 85x85 pixels does not divide into patches of 16x16"},
    {"info --model vit-a --shared-qkv offf",
     "unknown --shared-qkv value 'offf'; did you mean 'off'?"},
    {"info --model vit-a --encoding abs", "unknown encoding 'abs'; did you mean 'absolute'?"},
    {"info --model vit-a --pooling men", "unknown pooling 'men'; did you mean 'mean'?"},
    {"info --model vit-a --sharing log", "unknown sharing 'log'; did you mean 'logarithmic'?"},
    {"info --model vit-a --mixing sun", "unknown mixing 'sun'; did you mean 'sum'?"},
    {"info --model vit-a --init none", "unknown init 'none'; expected one of scaled, authors"},
    {"info --model vit-a --roles qq", "roles: expected each of q, k and v at most once, got 'qq'"},
    {"info --model vit-a --rest rotory", "unknown method 'rotory'; did you mean 'rotary'?"},
    {"info --model vit-a --batch 0", "model: expected a batch of 1 or more, got 0"},
    {"info --model gpt-a --image-size 84",
     "--image-size does not apply to gpt-a-160; it belongs to Images (vit)"},
    {"info --paper-table imagent", "unknown table 'imagent'; did you mean 'imagenet'?"},
    {"info --paper-table mnist --model vit-a", "--paper-table and --model do not go together"},
    {"info --paper-table mnist --batch 2", "--paper-table and --batch do not go together"},
};

TEST(WrongCalls, GetOneLineAndCodeTwo) {
  for (const auto& call : kWrongCalls) expect_refused(call);
}

TEST(Output, FailsWithCodeOneWhenItCannotBeWritten) {
  const auto outcome = run("list >/dev/full");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "translution: cannot write to standard output\n");
}

TEST(Output, EndsQuietlyOnAClosedPipe) {
  const auto outcome = run("info --paper-table imagenet --json | head -1");
  EXPECT_EQ(outcome.out, "[\n");
  EXPECT_THAT(outcome.err, IsEmpty());
}

}  // namespace
}  // namespace translution
