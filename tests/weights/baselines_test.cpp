#include "translution/weights/baselines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/weights/golden.h"
#include "translution/models/settings.h"
#include "translution/nn/regrid.h"

namespace translution::testing {

using namespace detail;

namespace {

using ::testing::HasSubstr;

constexpr int64_t kBaselineDim = 128, kBaselineHeads = 2, kBaselineHidden = 96, kBaselineDepth = 2;

at::Tensor numbers(at::IntArrayRef shape) { return at::randn(shape, at::kDouble) / 8; }

void add_norm(NamedTensors& t, const std::string& name) {
  t[name + ".weight"] = numbers({kBaselineDim}) + 1;
  t[name + ".bias"] = numbers({kBaselineDim});
}

at::Tensor norm(const NamedTensors& t, const std::string& name, const at::Tensor& x, double eps) {
  return at::layer_norm(x, {kBaselineDim}, t.at(name + ".weight"), t.at(name + ".bias"), eps);
}

// qkv [B,N,3*dim] to [B,N,dim].
at::Tensor attend(const at::Tensor& qkv, bool causal) {
  const auto parts =
      qkv.unflatten(-1, {3, kBaselineHeads, -1}).permute({2, 0, 3, 1, 4});  // [3,B,H,N,D]
  auto scores = parts[0].matmul(parts[1].transpose(-1, -2)) /
                std::sqrt(double(kBaselineDim / kBaselineHeads));
  const int64_t N = scores.size(-1);
  if (causal) scores = scores.masked_fill(at::ones({N, N}).tril() == 0, -INFINITY);
  return scores.softmax(-1).matmul(parts[2]).transpose(1, 2).flatten(2);
}

// ------------------------------------------------------------------------------------- GPT-2

NamedTensors random_gpt2() {
  torch::manual_seed(1);
  NamedTensors t;
  const auto conv1d = [&](const std::string& name, int64_t in, int64_t out) {
    t[name + ".weight"] = numbers({in, out});
    t[name + ".bias"] = numbers({out});
  };
  t["wte.weight"] = numbers({30, kBaselineDim});
  t["wpe.weight"] = numbers({12, kBaselineDim});
  for (int64_t layer = 0; layer < kBaselineDepth; ++layer) {
    const std::string h = join("h.", layer, ".");
    add_norm(t, h + "ln_1");
    conv1d(h + "attn.c_attn", kBaselineDim, 3 * kBaselineDim);
    conv1d(h + "attn.c_proj", kBaselineDim, kBaselineDim);
    add_norm(t, h + "ln_2");
    conv1d(h + "mlp.c_fc", kBaselineDim, kBaselineHidden);
    conv1d(h + "mlp.c_proj", kBaselineHidden, kBaselineDim);
  }
  add_norm(t, "ln_f");
  return t;
}

at::Tensor gpt2(const NamedTensors& t, const at::Tensor& tokens) {
  const auto conv1d = [&](const std::string& name, const at::Tensor& x) {
    return x.matmul(t.at(name + ".weight")) + t.at(name + ".bias");
  };
  auto x = t.at("wte.weight").index({tokens}) + t.at("wpe.weight").narrow(0, 0, tokens.size(1));
  for (int64_t layer = 0; layer < kBaselineDepth; ++layer) {
    const std::string h = join("h.", layer, ".");
    const auto qkv = conv1d(h + "attn.c_attn", norm(t, h + "ln_1", x, 1e-5));
    x = x + conv1d(h + "attn.c_proj", attend(qkv, /*causal=*/true));
    const auto hidden = conv1d(h + "mlp.c_fc", norm(t, h + "ln_2", x, 1e-5));
    const auto gelu =
        0.5 * hidden * (1 + (std::sqrt(2 / M_PI) * (hidden + 0.044715 * hidden.pow(3))).tanh());
    x = x + conv1d(h + "mlp.c_proj", gelu);
  }
  return norm(t, "ln_f", x, 1e-5).matmul(t.at("wte.weight").t());
}

at::Tensor our_logits(const ConvertedModel& converted, const at::Tensor& input) {
  const auto texts = model_texts(converted.options);  // as a file stores them
  Network network(read_model({texts.begin(), texts.end()}));
  network.module().to(at::kDouble);
  load_tensors(network.module(), converted.tensors, converted.options.grid());
  return network.forward(input);
}

TEST(Gpt2, GivesTheSameLogits) {
  const auto tensors = random_gpt2();
  const auto tokens = at::randint(30, {3, 9}, at::kLong);
  const auto converted = from_gpt2(tensors, "gpt2");
  EXPECT_EQ(converted.options.name(), "gpt-2x128x2x96-12");
  EXPECT_LE(relative_error(our_logits(converted, tokens), gpt2(tensors, tokens)), 1e-10);
}

TEST(Gpt2, IgnoresThePrefixMasksAndTheTiedHead) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : random_gpt2()) tensors["transformer." + name] = tensor;
  tensors["transformer.h.0.attn.bias"] = at::ones({1, 1, 12, 12}, at::kByte);
  tensors["transformer.h.1.attn.masked_bias"] = at::tensor(-1e4);
  tensors["lm_head.weight"] = tensors.at("transformer.wte.weight").clone();
  EXPECT_EQ(from_gpt2(tensors, "gpt2").tensors.size(),
            from_gpt2(random_gpt2(), "x").tensors.size());
}

TEST(Gpt2, TheSmallestHasOurBaseArchitecture) {
  auto options = from_gpt2(random_gpt2(), "gpt2").options;
  options.architecture = architecture_of(12, 768, 12, 3072, 64);
  options.length = 1024;
  EXPECT_EQ(options.name(), "gpt-base-1024");
}

// -------------------------------------------------------------------------------------- timm

constexpr int64_t kPatch = 4, kSide = 3, kChannels = 3;

NamedTensors random_timm(bool qkv_bias = true) {
  torch::manual_seed(2);
  NamedTensors t;
  const auto linear = [&](const std::string& name, int64_t in, int64_t out) {
    t[name + ".weight"] = numbers({out, in});
    t[name + ".bias"] = numbers({out});
  };
  t["cls_token"] = numbers({1, 1, kBaselineDim});
  t["pos_embed"] = numbers({1, kSide * kSide + 1, kBaselineDim});
  t["patch_embed.proj.weight"] = numbers({kBaselineDim, kChannels, kPatch, kPatch});
  t["patch_embed.proj.bias"] = numbers({kBaselineDim});
  for (int64_t layer = 0; layer < kBaselineDepth; ++layer) {
    const std::string block = join("blocks.", layer, ".");
    add_norm(t, block + "norm1");
    linear(block + "attn.qkv", kBaselineDim, 3 * kBaselineDim);
    if (!qkv_bias) t.erase(block + "attn.qkv.bias");
    linear(block + "attn.proj", kBaselineDim, kBaselineDim);
    add_norm(t, block + "norm2");
    linear(block + "mlp.fc1", kBaselineDim, kBaselineHidden);
    linear(block + "mlp.fc2", kBaselineHidden, kBaselineDim);
  }
  add_norm(t, "norm");
  linear("head", kBaselineDim, 7);
  return t;
}

at::Tensor timm_vit(const NamedTensors& t, const at::Tensor& image) {
  const auto linear = [&](const std::string& name, const at::Tensor& x) {
    const auto bias = t.find(name + ".bias");
    return at::linear(x, t.at(name + ".weight"), bias == t.end() ? at::Tensor() : bias->second);
  };
  auto x = at::conv2d(image, t.at("patch_embed.proj.weight"), t.at("patch_embed.proj.bias"), kPatch)
               .flatten(2)
               .transpose(1, 2);
  x = at::cat({t.at("cls_token").expand({x.size(0), -1, -1}), x}, 1) + t.at("pos_embed");
  for (int64_t layer = 0; layer < kBaselineDepth; ++layer) {
    const std::string block = join("blocks.", layer, ".");
    const auto qkv = linear(block + "attn.qkv", norm(t, block + "norm1", x, 1e-6));
    x = x + linear(block + "attn.proj", attend(qkv, /*causal=*/false));
    const auto hidden = linear(block + "mlp.fc1", norm(t, block + "norm2", x, 1e-6));
    x = x + linear(block + "mlp.fc2", at::gelu(hidden));
  }
  return linear("head", norm(t, "norm", x, 1e-6).select(1, 0));
}

TEST(Timm, GivesTheSameLogitsWithAndWithoutBias) {
  for (const bool bias : {true, false}) {
    const auto tensors = random_timm(bias);
    const auto images = at::randn({2, kChannels, kPatch * kSide, kPatch * kSide}, at::kDouble);
    const auto converted = from_timm(tensors, "vit");
    EXPECT_EQ(converted.options.name(), "vit-2x128x2x96/4");
    EXPECT_LE(relative_error(our_logits(converted, images), timm_vit(tensors, images)), 1e-10);
  }
}

// ---------------------------------------------------------------------------------- refusals

template <typename Convert>
std::string refusal(const Convert& convert) {
  try {
    convert();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Gpt2, NamesTheTensorThatDoesNotFit) {
  const auto with = [](const std::string& name, const at::Tensor& tensor) {
    auto tensors = random_gpt2();
    tensors[name] = tensor;
    return refusal([&] { from_gpt2(tensors, "model.safetensors"); });
  };
  EXPECT_EQ(with("lm_head.weight", numbers({30, kBaselineDim})),
            "model.safetensors: 'lm_head.weight' differs from 'wte.weight'; GPT-2 ties the two");
  EXPECT_EQ(with("wte.weight", numbers({30, 100})),
            "model.safetensors: expected a multiple of 64 channels (GPT-2's heads), got 100");
  EXPECT_THAT(with("h.1.ln_1.bias", numbers({64})),
              HasSubstr("'h.1.ln_1.bias' is [64], expected [128]"));
  EXPECT_THAT(with("score.weight", numbers({2, kBaselineDim})),
              HasSubstr("'score.weight' [2, 128] is not a tensor of this model"));
  EXPECT_EQ(refusal([] { from_gpt2(random_timm(), "vit.safetensors"); }),
            "vit.safetensors: 'wte.weight' is missing; these are not weights of this format");
}

TEST(Timm, NamesTheTensorThatDoesNotFit) {
  const auto with = [](const std::string& name, const at::Tensor& tensor) {
    auto tensors = random_timm();
    tensors[name] = tensor;
    return refusal([&] { from_timm(tensors, "vit.safetensors"); });
  };
  EXPECT_EQ(with("dist_token", numbers({1, 1, kBaselineDim})),
            "vit.safetensors: 'dist_token' belongs to a model with a distillation token, which our "
            "ViT does not have");
  EXPECT_THAT(with("blocks.0.ls1.gamma", numbers({kBaselineDim})), HasSubstr("layer scale"));
  EXPECT_THAT(with("blocks.0.attn.q_norm.weight", numbers({64})), HasSubstr("norms of queries"));
  EXPECT_THAT(with("pos_embed", numbers({1, 9, kBaselineDim})),
              HasSubstr("expected a square image"));
  EXPECT_THAT(with("norm.weight", at::ones({kBaselineDim}, at::kLong)),
              HasSubstr("'norm.weight' must hold floating-point numbers, got Long"));
}

}  // namespace
}  // namespace translution::testing
