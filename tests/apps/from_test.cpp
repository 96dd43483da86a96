// `train --from`: runs that start from trained weights.

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "tests/data/pictures.h"
#include "translution/core/error.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"
#include "translution/io/safetensors.h"
#include "translution/train/checkpoint.h"

namespace translution {

using namespace detail;

namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kPlain = "--model vit-tiny/7 --method self_attention --lr 0.003 ";
const std::string kStandStill = "--steps 1 --lr 0 ";  // evaluates the weights of the start

// The arguments of a small training, on digits unless `more` names other data.
std::string train_with(const std::string& more, const std::string& out) {
  std::string text = "train --batch 16 --eval-limit 64 --threads 1 --log-every 1 " + more;
  for (const std::string option : {"--data digits:64", "--canvas 28"})
    if (more.find(option.substr(0, option.find(' '))) == std::string::npos) text += " " + option;
  return text + " --out " + out;
}

// A run with self-attention, trained once.
struct Plain {
  Plain() {
    const auto outcome = run(train_with(kPlain + "--steps 8", path()));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
  std::string path() const { return folder.path() + "/plain"; }
  const TemporaryFolder folder;
};

std::string plain() {
  static const Plain run;
  return run.path();
}

class From : public SmallRun {
 protected:
  // Expects success. Returns the standard output.
  std::string start(const std::string& name, const std::string& more) const {
    const auto outcome = run(train_with(more, path(name)));
    EXPECT_EQ(outcome.code, 0) << more << ": " << outcome.err;
    return outcome.out;
  }
  // Expects a failure with one line. Returns the line.
  std::string refusal(const std::string& more, int code) const {
    const auto outcome = run(train_with(more, path("refused")));
    EXPECT_EQ(outcome.code, code) << more << ": " << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(fs::exists(path("refused"))) << more;
    return outcome.err;
  }
  // Loss on the centred digits after the first step.
  double first_loss(const std::string& name) const {
    for (const auto& moment : read_metrics(path(name) + "/metrics.jsonl"))
      if (moment.split == "static") return moment.values.front().second;
    return NAN;
  }
};

double evaluated_loss(const std::string& weights, const std::string& more = "") {
  const auto outcome = run("eval " + weights + " --json " + more);  // shows progress on stderr
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out).at("results").at("static").at("loss");
}

TEST_F(From, StartsWithTheOutputsOfSelfAttention) {
  const double loss = evaluated_loss(plain());
  for (const std::string method :
       {"translution", "alpha_translution", "relative_bias", "relative_key", "relative_value"}) {
    const auto out = start(method, "--from " + plain() + " --method " + method + " " + kStandStill);
    EXPECT_THAT(out, HasSubstr("the outputs are the same at the start\n"));
    EXPECT_THAT(out, HasSubstr("vit-tiny/7 with " + method + ": "));
    EXPECT_NEAR(first_loss(method), loss, 1e-5) << method;
  }
}

TEST_F(From, PrintsWhatIsTakenAndWhatStartsAnew) {
  const auto alpha =
      start("alpha", "--from " + plain() + " --method alpha_translution " + kStandStill);
  EXPECT_THAT(alpha, HasSubstr("starts from " + plain() +
                               "/checkpoints/step-00000008: vit-tiny/7 "
                               "with self_attention\n"));
  EXPECT_THAT(alpha, ContainsRegex("\n  taken +38 +[0-9,]+\n  zero at first +4 +[0-9,]+  "
                                   "attention.query_offsets, attention.value_offsets\n  new +10 "));
  const auto full =
      start("full", "--from " + plain() + " --method translution --roles v " + kStandStill);
  EXPECT_THAT(full, ContainsRegex("\n  repeated per offset +2 +[0-9,]+  attention.value\n"));
  const auto bias = start("bias", "--from " + plain() + " --method relative_bias " + kStandStill);
  EXPECT_THAT(bias, ContainsRegex("\n  zero at first +2 +[0-9,]+  attention.bias\n"));
  const auto rotary = start("rotary", "--from " + plain() + " --method rotary " + kStandStill);
  EXPECT_THAT(rotary, HasSubstr("\nrotary in 2 layers (angles double) instead of off\nthe "
                                "outputs differ at the start\n"));
  const auto window = start("window", "--from " + plain() + " --method convolution " + kStandStill);
  EXPECT_THAT(window, ContainsRegex("\n  new +2 +[0-9,]+  attention.kernel\n  not taken +6 "));
}

TEST_F(From, KeepsTheModelOfTheWeightsUnlessOptionsChangeIt) {
  const auto alpha = start("alpha",
                           "--method alpha_translution --relative-dim 3 --dropout 0.1 "
                           "--model vit-tiny/7 --steps 2");
  EXPECT_THAT(start("same", "--from " + path("alpha") + " " + kStandStill),
              HasSubstr("the outputs are the same at the start"));
  const auto config = read_file(path("same") + "/config.toml");
  for (const char* line : {"model = \"vit-tiny/7\"", "relative-dim = \"3\"", "dropout = \"0.1\""})
    EXPECT_THAT(config, HasSubstr(line));
  EXPECT_THAT(config, HasSubstr("[start]\nfrom = \"" + path("alpha") + "\"\n"));
  EXPECT_THAT(start("wide", "--from " + path("alpha") + " --relative-dim 5 --steps 1"),
              ContainsRegex("zero at first +4 .*\n  new +10 .*\n  not taken +14 "));
}

TEST_F(From, AnotherImageSizeMovesRows) {
  const auto larger = start("larger", "--from " + plain() + " --canvas 42 --steps 2");
  EXPECT_THAT(larger, ContainsRegex("\n  moved to the grid +1 +[0-9,]+  position_embedding\n"));
  EXPECT_THAT(larger, HasSubstr("\ngrid 6x6 instead of 4x4\n"));
  start("alpha", "--from " + plain() + " --method alpha_translution --steps 2");
  EXPECT_THAT(start("again", "--from " + path("alpha") + " --canvas 42 --steps 2"),
              ContainsRegex("\n  moved to the grid +7 .*position_embedding, attention.query_o"));
}

// A ViT of two layers for digits with timm's names.
void save_timm(const std::string& path, bool bias) {
  torch::manual_seed(5);
  const int64_t dim = 64;
  NamedTensors t;
  const auto linear = [&](const std::string& name, int64_t in, int64_t out) {
    t[name + ".weight"] = torch::randn({out, in}) / 8;
    t[name + ".bias"] = torch::randn({out}) / 8;
  };
  t["cls_token"] = torch::randn({1, 1, dim});
  t["pos_embed"] = torch::randn({1, 5, dim});
  t["patch_embed.proj.weight"] = torch::randn({dim, 1, 14, 14}) / 8;
  t["patch_embed.proj.bias"] = torch::randn({dim});
  for (const std::string block : {"blocks.0.", "blocks.1."}) {
    for (const char* norm : {"norm1", "norm2"}) {
      t[block + norm + ".weight"] = torch::ones({dim});
      t[block + norm + ".bias"] = torch::zeros({dim});
    }
    linear(block + "attn.qkv", dim, 3 * dim);
    if (!bias) t.erase(block + "attn.qkv.bias");
    linear(block + "attn.proj", dim, dim);
    linear(block + "mlp.fc1", dim, 96);
    linear(block + "mlp.fc2", 96, dim);
  }
  t["norm.weight"] = torch::ones({dim});
  t["norm.bias"] = torch::zeros({dim});
  linear("head", dim, 10);
  save_safetensors(path, t);
}

TEST_F(From, AConvertedModelContinuesAsTranslution) {
  const std::string theirs = path("timm.safetensors"), ours = path("ours.safetensors");
  for (const bool bias : {true, false}) {
    save_timm(theirs, bias);
    output_of(join("convert ", theirs, " ", ours, " --from timm"));
    const double loss = evaluated_loss(ours, "--data digits:64 --canvas 28 --eval-limit 64");
    for (const std::string method : {"alpha_translution", "translution"}) {
      const std::string name = method + (bias ? "-bias" : "");
      const auto out = start(name, "--from " + ours + " --method " + method + " " + kStandStill);
      EXPECT_THAT(out, HasSubstr("taken head: " + ours +
                                 " has no class names; its 10 classes must "
                                 "be those of the data, in the same order\n"));
      EXPECT_THAT(out, Not(HasSubstr("not taken")));
      EXPECT_NEAR(first_loss(name), loss, 1e-5 * loss) << name;
    }
  }
}

// Two or more classes of flat images.
std::string write_images(const TemporaryFolder& folder, const std::vector<std::string>& classes) {
  const std::string data = join("data-", classes.size(), "-", classes.back());
  for (const std::string split : {"/train/", "/val/"})
    for (size_t c = 0; c < classes.size(); ++c)
      for (int i = 0; i < 2; ++i)
        folder.write(join(data, split, classes[c], "/", i, ".png"),
                     encode_png(flat_image(32, 32, static_cast<uint8_t>(40 * c + i))));
  return folder.path() + "/" + data;
}

TEST_F(From, TheHeadIsTakenForTheSameClassesOnly) {
  const TemporaryFolder folder;
  const auto train = [&](const std::string& name, const std::string& data,
                         const std::string& more) {
    const auto outcome = run("train --threads 1 --augment none --steps 1 --data images:" + data +
                             " --out " + path(name) + " " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const auto two = write_images(folder, {"cat", "dog"});
  train("two", two, "--model vit-tiny/16 --image-size 32 --method translution");
  const std::string from = "--from " + path("two");
  EXPECT_THAT(train("same", two, from), Not(HasSubstr("head")));
  EXPECT_THAT(train("three", write_images(folder, {"cat", "dog", "elk"}), from),
              ContainsRegex("\n  new +2 +147  head\n  not taken +2 +98  head\nnew head: the data "
                            "has 3 classes, .*/step-00000001 has 2\n"));
  EXPECT_THAT(train("others", write_images(folder, {"cat", "elk"}), from),
              ContainsRegex("new head: the classes are not those of .*'dog' is missing, 'elk' is "
                            "new\n"));
}

TEST_F(From, AResumedRunDoesNotReadTheWeightsAgain) {
  fs::copy(plain(), path("old"), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const std::string more = "--from " + path("old") +
                           " --method alpha_translution --dropout 0.1 --steps 6 --save-every 2";
  start("whole", more);
  const auto killed = run(train_with(more, path("killed")), with_fault("kill:400"));
  EXPECT_EQ(killed.code, -1);
  ASSERT_FALSE(list_steps(path("killed") + "/checkpoints").empty());
  ASSERT_LT(list_steps(path("killed") + "/checkpoints").front(), 6);
  fs::remove_all(path("old"));
  const auto resumed = run(train_with(more + " --resume auto", path("killed")));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr(path("killed") + " has a checkpoint; --from " + path("old") +
                                     " is not read\nresumed after step "));
  EXPECT_THAT(resumed.out, Not(HasSubstr("starts from")));
  EXPECT_EQ(weights_of(path("killed")), weights_of(path("whole")));
  const auto config = read_file(path("killed") + "/config.toml");
  EXPECT_EQ(config, read_file(path("whole") + "/config.toml"));

  // Without --from, the run remembers it.
  const auto longer = run("train --config " + path("killed") +
                          "/config.toml --steps 8 --resume "
                          "auto --out " +
                          path("killed"));
  EXPECT_EQ(longer.code, 0) << longer.err;
  const auto manifest = load_manifest(path("killed"));
  EXPECT_EQ(manifest.state.at("from").at("path"), path("old"));
  EXPECT_EQ(manifest.state.at("from").at("checksum"), load_manifest(plain()).model.checksum);
  EXPECT_THAT(read_file(path("killed") + "/config.toml"), HasSubstr("\nfrom = "));
}

// The method brings a position embedding of its own, which starts at zero.
TEST_F(From, ARunWithOtherDefaultsOfItsMethodIsResumed) {
  start("rotary", "--model vit-tiny/7 --method rotary --steps 1");
  const std::string more = "--from " + path("rotary") + " --method self_attention --steps ";
  EXPECT_THAT(start("run", more + "1"), ContainsRegex("zero at first +1 +[0-9,]+  position_emb"));
  start("run", more + "2 --resume auto");
}

TEST_F(From, OtherWeightsAreRefusedOnResume) {
  start("run", "--from " + plain() + " --steps 2");
  const auto outcome = run(train_with("--from elsewhere --steps 4 --resume auto", path("run")));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("translution: resume: from is 'elsewhere' now and '" +
                                     plain() + "' in " + path("run") +
                                     "/checkpoints/step-00000002"
                                     "; leave it out, or use another --out\n"));
  EXPECT_EQ(run(train_with("--from " + plain() + " --steps 4", path("run"))).code, 2);
}

TEST_F(From, AKillBeforeTheFirstCheckpointStartsFromTheWeightsAgain) {
  const std::string more = "--from " + plain() + " --method translution --steps 2";
  start("whole", more);
  EXPECT_EQ(run(train_with(more, path("early")), with_fault("kill:30")).code, -1);
  EXPECT_THAT(start("early", more + " --resume auto"), HasSubstr("starts from " + plain()));
  EXPECT_EQ(weights_of(path("early")), weights_of(path("whole")));
}

TEST_F(From, AConfigFileMayNameTheWeights) {
  start("first", "--from " + plain() + " --method alpha_translution --steps 2");
  const auto again =
      run("train --config " + path("first") + "/config.toml --threads 1 --out " + path("second"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(weights_of(path("first")), weights_of(path("second")));
}

TEST_F(From, RefusesWeightsThatDoNotFit) {
  const std::string ours = path("ours.safetensors");
  EXPECT_THAT(refusal("--from " + path("gone"), 1),
              HasSubstr(path("gone") + ": no such file or directory; expected a run, a checkpoint "
                                       "or a file of weights\n"));
  save_timm(ours, false);
  EXPECT_THAT(refusal("--from " + ours, 1),
              HasSubstr(ours + ": has no model options in its metadata; `translution convert` "
                               "writes a file with them\n"));
  const std::string from = "--from " + plain() + " ";
  EXPECT_THAT(refusal(from + "--model gpt-tiny-16", 2),
              HasSubstr("--model: expected vit-tiny/7 as in " + plain()));
  EXPECT_THAT(refusal(from + "--model lor_qkv_tiny/7", 2), HasSubstr("got the authors' name"));
  EXPECT_THAT(refusal(from + "--model vit-a/7", 2),
              HasSubstr(plain() + ": expected weights of vit-a/7, got those of vit-tiny/7; use"));
  EXPECT_THAT(refusal(from + "--model vit-tiny/14", 2), HasSubstr("got those of vit-tiny/7"));
  EXPECT_THAT(refusal(from + "--data text", 2), HasSubstr("vit-tiny/7: expected images, got text"));
  EXPECT_THAT(refusal(from + "--method translution --canvas 1400", 1),
              ContainsRegex("training vit-tiny/7 with translution, .* needs .* of memory"));
}

TEST_F(From, RefusesOtherChannelsAndVocabularies) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal("--from " + plain() + " --image-size 28 --augment none --data images:" +
                          write_images(folder, {"a", "b"}),
                      2),
              HasSubstr(": expected weights for images with 3 channels, got 1 channel; "));
  const std::string text = "train --data text --threads 1 --batch 4 --eval-limit 4 --out ";
  ASSERT_EQ(run(text + path("text") + " --steps 1 --model gpt-tiny-16").code, 0);
  ASSERT_EQ(run(text + path("long") + " --steps 1 --model gpt-tiny-24 --from " + path("text")).code,
            0);
  EXPECT_THAT(refusal("--from " + path("text"), 2), HasSubstr("gpt-tiny-16: expected text, got"));
  auto weights = load_safetensors(path("text") + "/checkpoints/last/model.safetensors");
  for (const char* name : {"token_embedding.weight", "head.weight"})
    weights.tensors[name] = torch::zeros({300, 48});
  auto state = load_manifest(path("text")).state.at("config");
  state["vocabulary"] = "300";
  save_safetensors(path("words.safetensors"), weights.tensors, state.get<SafetensorsMetadata>());
  EXPECT_THAT(refusal("--data text --from " + path("words.safetensors"), 2),
              HasSubstr("text: expected a vocabulary of 300 as in " + path("words.safetensors") +
                        ", got 256; choose other data or other weights\n"));
}

TEST_F(From, RefusesWeightsThatAreNotFinite) {
  auto weights = load_safetensors(plain() + "/checkpoints/last/model.safetensors");
  weights.tensors.at("head.bias")[3] = NAN;
  const auto state = load_manifest(plain()).state.at("config");
  save_safetensors(path("nan.safetensors"), weights.tensors, state.get<SafetensorsMetadata>());
  EXPECT_THAT(refusal("--from " + path("nan.safetensors"), 1),
              HasSubstr("nan.safetensors: tensor 'head.bias' holds nan; expected finite numbers"));
}

}  // namespace
}  // namespace translution
