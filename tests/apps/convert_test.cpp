#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/program.h"
#include "tests/support/temp_dir.h"
#include "tests/weights/golden.h"
#include "translution/core/error.h"
#include "translution/io/safetensors.h"

namespace translution {

using namespace detail;

namespace {

using testing::golden_names;
using ::testing::HasSubstr;
using testing::load_golden;
using testing::TempDir;

// --model and further options for a golden ViT or GPT.
std::string flags_of(const testing::Golden& golden) {
  const auto model = read_authors_module(golden.family, golden.kind, golden.options).model;
  std::string flags;
  const auto add = [&](const std::string& name, const std::string& text) {
    flags += " --" + name + " " + text;
  };
  add("model", model.name());
  add("method", name_of(kMethods, model.position.method));
  add("roles", model.position.roles.str());
  add("rotary", model.position.rotary ? "on" : "off");
  add("mixing", name_of(kMixings, model.position.mixing));
  add("relative-dim", std::to_string(model.position.relative_dim));
  add("input-embedding", model.embeds_input() ? "on" : "off");
  add("rest", "rotary");
  if (model.hybrid_layers) add("hybrid-layers", std::to_string(*model.hybrid_layers));
  if (model.family == Family::gpt)
    add("vocabulary", std::to_string(model.vocabulary));
  else
    add("image-size 6x4 --classes", std::to_string(model.classes));
  return flags;
}

TEST(Convert, RoundTripsTheAuthorsModels) {
  TempDir dir;
  const std::string theirs = dir / "theirs.safetensors", ours = dir / "ours.safetensors",
                    again = dir / "again.safetensors";
  int models = 0;
  for (const auto& name : golden_names()) {
    const auto golden = load_golden(name);
    if (golden.kind == "layer") continue;
    SCOPED_TRACE(name);
    ++models;
    save_safetensors(theirs, golden.state);
    output_of(join("convert ", theirs, " ", ours, " --from authors", flags_of(golden)));
    output_of(join("convert ", ours, " ", again, " --to authors"));
    const auto back = load_safetensors(again).tensors;
    // The authors' rope has the role v, and unused tables that only --model rope_tiny writes.
    if (golden.family != "rope") {
      EXPECT_EQ(back.size(), golden.state.size());
    }
    for (const auto& [key, gradient] : golden.gradients)
      EXPECT_TRUE(at::equal(back.at(key), golden.state.at(key))) << key;
  }
  EXPECT_EQ(models, 16);
}

TEST(Convert, PrintsTheModelAndReadsWeightsOfDataParallel) {
  TempDir dir;
  const auto golden = load_golden("gpt_former");
  NamedTensors parallel;
  for (const auto& [name, tensor] : golden.state) parallel["module." + name] = tensor;
  save_safetensors(dir / "theirs.safetensors", parallel);
  EXPECT_EQ(
      output_of(join("convert ", dir / "theirs.safetensors", " ", dir / "ours.safetensors",
                     " --from authors", flags_of(golden))),
      dir / "ours.safetensors" + ": gpt-2x9x3x24x8-4 with self_attention, 3,018 parameters\n");
  EXPECT_EQ(load_safetensors(dir / "ours.safetensors").metadata.at("model"), "gpt-2x9x3x24x8-4");
}

TEST(Convert, AcceptsTheAuthorsModelNames) {
  const auto row = [](const std::string& flags) { return json_of("info " + flags).front(); };
  const auto theirs = row("--model lor_qkv_tiny --classes 10");
  const auto same =
      row("--model vit-a/16 --method alpha_translution --relative-dim 16 --classes 10");
  EXPECT_EQ(theirs["parameters"], same["parameters"]);
  EXPECT_EQ(theirs["model"], "vit-a/16");
  EXPECT_EQ(row("--model qkv_mini/56")["parameters"],
            row("--model vit-b/56 --method translution")["parameters"]);
  EXPECT_EQ(row("--model former_small-64")["parameters"],
            row("--model gpt-c-64 --method self_attention")["parameters"]);
  expect_refused(
      {"info --model lor_qvk_tiny",
       "unknown model 'lor_qvk_tiny'; did you mean 'lor_qk_tiny'? Append a patch size or length: "
       "vit-a/12, gpt-a-160"});
}

// A GPT-2 of two small layers with a vocabulary of bytes.
void save_gpt2(const std::string& path) {
  torch::manual_seed(3);
  const int64_t dim = 64;
  NamedTensors t;
  const auto add = [&](const std::string& name, std::vector<int64_t> weight, int64_t bias) {
    t[name + ".weight"] = torch::randn(weight) / 8;
    if (bias > 0) t[name + ".bias"] = torch::randn({bias}) / 8;
  };
  add("wte", {256, dim}, 0);
  add("wpe", {16, dim}, 0);
  for (const std::string h : {"h.0.", "h.1."}) {
    add(h + "ln_1", {dim}, dim);
    add(h + "attn.c_attn", {dim, 3 * dim}, 3 * dim);
    add(h + "attn.c_proj", {dim, dim}, dim);
    add(h + "ln_2", {dim}, dim);
    add(h + "mlp.c_fc", {dim, 4 * dim}, 4 * dim);
    add(h + "mlp.c_proj", {4 * dim, dim}, dim);
  }
  add("ln_f", {dim}, dim);
  save_safetensors(path, t);
}

TEST(Convert, ConvertedGpt2GeneratesTextWithATokenizer) {
  TempDir dir;
  const std::string gpt2 = dir / "gpt2.safetensors", ours = dir / "ours.safetensors";
  save_gpt2(gpt2);
  EXPECT_THAT(output_of(join("convert ", gpt2, " ", ours, " --from gpt2")),
              HasSubstr("gpt-2x64x1x256-16 with self_attention"));
  testing::put_bytes(dir / "book.txt", std::string(500, 'a') + std::string(500, 'b'));
  run(join("data text ", dir / "book.txt", " --out ", dir / "tokens"));
  const auto text =
      output_of(join("generate ", ours, " --prompt ab --tokens 20 --data tokens:", dir / "tokens"));
  EXPECT_THAT(text, ::testing::StartsWith("ab"));
  EXPECT_GE(text.size(), 20u);
  const auto outcome = run("generate " + ours);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("does not name its data; name data with its tokenizer: --data"));
}

TEST(Convert, RefusesWrongCalls) {
  TempDir dir;
  const std::string file = dir / "gpt2.safetensors", out = dir / "out.safetensors";
  save_gpt2(file);
  const auto said = [&](const std::string& flags, int code) {
    const auto outcome = run(join("convert ", file, " ", out, " ", flags));
    EXPECT_EQ(outcome.code, code) << flags;
    EXPECT_FALSE(std::filesystem::exists(out)) << flags;
    return outcome.err;
  };
  EXPECT_THAT(said("", 2), HasSubstr("--from FORMAT or --to FORMAT is missing; see translution "));
  EXPECT_THAT(said("--from translution", 2), HasSubstr("--from and --to are both translution"));
  EXPECT_THAT(said("--from author", 2),
              HasSubstr("unknown from 'author'; did you mean 'authors'?"));
  EXPECT_THAT(said("--to timm", 2), HasSubstr("--to: expected translution or authors, got timm"));
  EXPECT_THAT(said("--from authors", 2), HasSubstr("--model is missing"));
  EXPECT_THAT(said("--from gpt2 --model gpt-a-16", 2),
              HasSubstr("gpt2 weights determine the model; remove --model"));
  EXPECT_THAT(said("--to authors", 1), HasSubstr("has no model options in its metadata"));
  EXPECT_THAT(said("--from timm", 1), HasSubstr("'patch_embed.proj.weight' is missing"));
  EXPECT_THAT(
      said("--from authors --model lor_kv_tiny-256", 1),
      HasSubstr("'wte.weight' is [256, 64], expected [50257, 192] (a vocabulary of 50257)"));
  EXPECT_THAT(said("--from gpt2 --to authors", 2),
              HasSubstr("expected extra_norms on and gelu exact, as in their code"));
}

}  // namespace
}  // namespace translution
