#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/weights/golden.h"

namespace translution::testing {
namespace {

using ::testing::HasSubstr;
using Options = std::map<std::string, std::string>;

// The error message for the golden case after `change`.
std::string refusal(const std::string& name,
                    const std::function<void(NamedTensors&, Options&)>& change) {
  auto golden = load_golden(name);
  change(golden.state, golden.options);
  try {
    const auto module = read_authors_module(golden.family, golden.kind, golden.options);
    to_ours(module.links(), golden.state, "model.safetensors");
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(WrongCheckpoint, AnotherGridIsNamed) {
  EXPECT_EQ(
      refusal("layer2d_qkv", [](auto&, auto& o) { o["grid"] = "(4, 2)"; }),
      "model.safetensors: 'to_q.unique_params' is [18, 9, 12], expected [24, 9, 12] (a matrix "
      "for each offset of a 4x2 grid, three for the class token); check the model's name and "
      "options");
  EXPECT_THAT(
      refusal("vit_former", [](auto&, auto& o) { o["image_size"] = "(6, 6)"; }),
      HasSubstr("'pos_embedding' is [1, 7, 9], expected [1, 10, 9] (a vector for each of 10 "
                "tokens)"));
  EXPECT_THAT(
      refusal("vit_rope_former",
              [](auto& t, auto&) {
                t["transformer.layers.1.0.rope.cos_cached"] = at::zeros({1, 3, 2, 8}, at::kDouble);
              }),
      HasSubstr("'transformer.layers.1.0.rope.cos_cached' does not hold rotations on a 3x2 "
                "grid, base 10000"));
  EXPECT_THAT(
      refusal("gpt_v", [](auto&, auto& o) { o["seq_len"] = "5"; }),
      HasSubstr("is [1, 1, 4, 4], expected [1, 1, 5, 5] (the mask of a causal sequence of 5)"));
}

TEST(WrongCheckpoint, OtherHeadsAreNamed) {
  EXPECT_THAT(refusal("vit_lor_qkv", [](auto&, auto& o) { o["heads"] = "2"; }),
              HasSubstr("to_qkv.weight' is [72, 9], expected [48, 9] (qkv of 2 heads of 8)"));
  EXPECT_THAT(refusal("vit_lor_qkv", [](auto&, auto& o) { o["relative_dim"] = "4"; }),
              HasSubstr("to_q1.weight' is [6, 9], expected [12, 9] (relative_dim 4 for each of 3 "
                        "heads)"));
}

TEST(WrongCheckpoint, MissingAndOtherKeysAreNamed) {
  EXPECT_EQ(refusal("vit_v", [](auto& t, auto&) { t.erase("mlp_head.bias"); }),
            "model.safetensors: 'mlp_head.bias' [5] (5 classes) is missing; check the model's name "
            "and options");
  EXPECT_EQ(refusal("vit_v", [](auto& t, auto&) { t["mlp_head.scale"] = at::ones({2}); }),
            "model.safetensors: 'mlp_head.scale' [2] is not a tensor of this model; check the "
            "model's name and options; did you mean 'mlp_head.bias'?");
  EXPECT_THAT(refusal("vit_v", [](auto&, auto& o) { o["hybrid_layers"] = "1"; }),
              HasSubstr("layers.1.0.rope.cos_cached' [1, 3, 2, 8] (rotations on a 3x2 grid, base "
                        "10000) is missing"));
}

TEST(WrongCheckpoint, AnotherTypeIsNamed) {
  EXPECT_EQ(refusal("vit_v",
                    [](auto& t, auto&) { t["mlp_head.bias"] = t["mlp_head.bias"].to(at::kFloat); }),
            "model.safetensors: 'mlp_head.bias' is Float, other tensors are Double; convert all to "
            "one type first");
  EXPECT_EQ(refusal("vit_v", [](auto& t, auto&) { t["cls_token"] = t["cls_token"].to(at::kLong); }),
            "model.safetensors: 'cls_token' must hold floating-point numbers, got Long");
}

TEST(WrongCheckpoint, RefusesOptionsThatTheirModulesDoNotHave) {
  EXPECT_EQ(refusal("vit_v", [](auto&, auto& o) { o["num_class"] = "5"; }),
            "authors' weights: a vit has no option 'num_class'; did you mean 'num_classes'?");
  EXPECT_THAT(refusal("layer2d_q", [](auto&, auto& o) { o["cls"] = "1"; }),
              HasSubstr("cls: expected True or False, got '1'"));
  EXPECT_THAT(refusal("layer2d_q", [](auto&, auto& o) { o["cls"] = "False"; }),
              HasSubstr("their code has no tables without a class token's rows"));
  EXPECT_THAT(refusal("layer2d_q", [](auto&, auto& o) { o.erase("dim"); }),
              HasSubstr("a layer needs dim"));
  EXPECT_THROW(read_authors_module("lor_kvq", "layer", {{"dim", "4"}}), std::invalid_argument);
  EXPECT_THROW(read_authors_module("v", "vit3d", {}), std::invalid_argument);
  EXPECT_THROW(read_authors_module("v_tiny-64", "vit", {}), std::invalid_argument);
  EXPECT_EQ(read_authors_module("v_tiny-64", "gpt", {}).model.length, 64);
}

TEST(ToAuthors, RefusesModelsThatTheirCodeDoesNotHave) {
  const auto message = [](const std::function<void(ModelOptions&)>& change) {
    auto model = ModelOptions::named("lor_qkv_tiny");
    change(model);
    try {
      authors_links(model);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message([](auto& m) { m.position.mixing = Mixing::sum; }),
              HasSubstr("averages them"));
  EXPECT_THAT(message([](auto& m) { m.position.shared_qkv = false; }), HasSubstr("shared_qkv off"));
  EXPECT_THAT(message([](auto& m) { m.position.encoding = Encoding::absolute; }),
              HasSubstr("encoding absolute"));
  EXPECT_THAT(message([](auto& m) {
                m.position.sharing = Sharing::direction;
                m.position.radius = 2;
              }),
              HasSubstr("sharing direction"));
  EXPECT_THAT(message([](auto& m) { m.position.method = Method::relative_bias; }),
              HasSubstr("no relative_bias"));
  EXPECT_THAT(message([](auto& m) { m.pooling = Pooling::mean; }), HasSubstr("pooling cls"));
  EXPECT_THAT(message([](auto& m) { m.extra_norms = false; }), HasSubstr("extra_norms on"));
}

}  // namespace
}  // namespace translution::testing
