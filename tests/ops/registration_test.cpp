// The registered ops: schemas, the Meta device, requested gradients.

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>

#include "tests/support/cases.h"
#include "tests/support/terms.h"
#include "translution/ops/compat.h"
#include "translution/ops/rotary.h"

namespace translution::testing {
namespace {

using Stack = std::vector<c10::IValue>;

using Arguments = std::map<std::string, c10::IValue>;

// Calls translution::<name> by its schema. Missing arguments get their default, or None.
Stack call(const std::string& name, const Arguments& given) {
  const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(("translution::" + name).c_str(), "");
  Stack stack;
  for (const auto& argument : op.schema().arguments()) {
    const auto found = given.find(argument.name());
    if (found != given.end())
      stack.push_back(found->second);
    else
      stack.push_back(argument.default_value().value_or(c10::IValue()));
  }
  op.callBoxed(&stack);
  return stack;
}

c10::IValue list(const Inputs& inputs, const std::vector<std::string>& names) {
  c10::List<OptionalTensor> tensors;
  for (const auto& name : names) {
    const auto found = inputs.find(name);
    tensors.push_back(found == inputs.end() ? OptionalTensor() : OptionalTensor(found->second));
  }
  return tensors;
}

const std::vector<std::string> kTerms = {"q",       "k",     "v",        "rel_q",
                                         "table_q", "rel_k", "table_k",  "rel_v",
                                         "table_v", "bias",  "position", "gate"};

Config image(Method method) {
  Config config;
  config.method = method;
  config.grid = {3, 2};
  config.cls = true;
  config.H = 2;
  config.D = 4;
  config.mask = true;
  return config;
}

TermsConfig every_term() {
  TermsConfig config;
  config.q = config.k = config.v = Side::matrices;
  config.bias = config.gate = config.keep = config.mask = true;
  return config;
}

TEST(Schema, EveryOpIsRegistered) {
  for (const char* name :
       {"translution", "alpha_translution", "self_attention", "attention", "attention_backward",
        "convolution", "convolution_backward", "project", "project_backward", "rotary",
        "layer_norm", "layer_norm_backward", "gelu", "gelu_backward", "cross_entropy",
        "cross_entropy_backward", "adamw_", "gradient_norm"})
    EXPECT_TRUE(c10::Dispatcher::singleton()
                    .findSchema({std::string("translution::") + name, ""})
                    .has_value())
        << name;
}

TEST(Schema, TranslutionMatchesTheFunction) {
  const Case c(image(Method::translution));
  Arguments arguments{
      {"pairs", c.call().pairs.text}, {"heads", c.config().H}, {"mask", c.call().mask}};
  for (const auto& [name, tensor] : c.inputs()) arguments[name] = tensor;
  EXPECT_EQ(error(call("translution", arguments).at(0).toTensor(), c.run()), 0);
}

TEST(Schema, AlphaTranslutionMatchesTheFunction) {
  for (const Mixing mixing : {Mixing::sum, Mixing::mean}) {
    auto config = image(Method::alpha_translution);
    config.mixing = mixing;
    config.rows = {0, 3};
    const Case c(config);
    const auto& in = c.inputs();
    const auto out =
        call("alpha_translution", {{"x", in.at("x")},
                                   {"shared", list(in, {"q", "k", "v"})},
                                   {"down", list(in, {"down_q", "down_k", "down_v"})},
                                   {"table", list(in, {"table_q", "table_k", "table_v"})},
                                   {"up", in.at("up")},
                                   {"pairs", c.call().pairs.text},
                                   {"heads", config.H},
                                   {"mixing", name_of(kMixings, mixing)},
                                   {"rows", config.rows},
                                   {"mask", c.call().mask}});
    EXPECT_EQ(error(out.at(0).toTensor(), c.run()), 0);
  }
}

TEST(Schema, SelfAttentionMatchesTheFunction) {
  for (const Method method : self_attention_methods()) {
    const Case c(image(method));
    SCOPED_TRACE(c.config().str());
    const auto given = c.call();
    Arguments arguments{{"heads", c.config().H}, {"pairs", given.pairs.text}, {"mask", given.mask}};
    if (given.angles.defined()) arguments["angles"] = given.angles;
    for (const auto& [name, tensor] : c.inputs()) arguments[name] = tensor;
    EXPECT_EQ(error(call("self_attention", arguments).at(0).toTensor(), c.run()), 0);
  }
}

Arguments call_arguments(const TermsCase& c) {
  const auto& call = c.call();
  return {{"terms", list(c.inputs(), kTerms)},
          {"pairs", call.pairs.text},
          {"grid", call.pairs.grid},
          {"rows", call.pairs.rows},
          {"keep", call.keep},
          {"mask", call.mask},
          {"heads", call.heads},
          {"scale", call.scale},
          {"workspace", call.workspace},
          {"precision", "float32"},
          {"group", ""}};
}

TEST(Schema, AttentionMatchesTheFunction) {
  const TermsCase c(every_term());
  const auto out = call("attention", call_arguments(c));
  const auto result = c.attend(c.inputs());
  EXPECT_EQ(error(out.at(0).toTensor(), result.out), 0);
  EXPECT_EQ(error(out.at(1).toTensor(), result.relative_out), 0);
  EXPECT_EQ(error(out.at(2).toTensor(), result.attention), 0);
}

TEST(Schema, AttentionBackwardComputesOnlyRequestedGradients) {
  const TermsCase c(every_term());
  auto leaves = c.inputs();
  std::vector<at::Tensor> ordered;
  for (const auto& name : kTerms)
    ordered.push_back(leaves[name] = leaves[name].clone().requires_grad_(true));
  const auto tracked = c.attend(leaves);
  const auto expected =
      torch::autograd::grad({tracked.out.sum() + tracked.relative_out.sum()}, ordered);

  const auto result = c.attend(c.inputs());
  auto arguments = call_arguments(c);
  arguments["d_out"] = at::ones_like(result.out);
  arguments["d_relative_out"] = at::ones_like(result.relative_out);
  arguments["attention"] = result.attention;
  arguments["kept"] = result.kept;
  for (size_t requested = 0; requested < kTerms.size(); ++requested) {
    arguments["needs"] = int64_t{1} << requested;
    const auto grads = call("attention_backward", arguments).at(0).toTensorVector();
    ASSERT_EQ(grads.size(), kTerms.size());
    EXPECT_LE(error(grads[requested], expected[requested]), 1e-13) << kTerms[requested];
    for (size_t term = 0; term < kTerms.size(); ++term)
      EXPECT_TRUE(term == requested || grads[term].numel() == 0)
          << "requested " << kTerms[requested] << ", got " << kTerms[term];
  }
}

TEST(Schema, ConvolutionAndItsBackwardMatchTheFunction) {
  auto config = image(Method::convolution);
  config.mask = false;  // has no part in backward
  const Case c(config);
  const auto out = c.run();
  Arguments arguments{{"x", c.inputs().at("x")},
                      {"weight", c.inputs().at("kernel")},
                      {"pairs", c.call().pairs.text},
                      {"grid", std::vector<int64_t>()},
                      {"rows", std::vector<int64_t>()}};
  EXPECT_EQ(error(call("convolution", arguments).at(0).toTensor(), out), 0);
  const auto expected = gradients(c, c.inputs_with_grad(), at::ones_like(out));
  arguments["d_out"] = at::ones_like(out);
  arguments["needs"] = 3;
  const auto grads = call("convolution_backward", arguments);
  EXPECT_EQ(error(grads.at(0).toTensor(), expected.at("x")), 0);
  EXPECT_EQ(error(grads.at(1).toTensor(), expected.at("kernel")), 0);
}

TEST(Schema, RotaryMatchesTheFunction) {
  auto random = generator("rotary by schema");
  const auto x = normal({2, 6, 8}, random), angles = rotary_angles({6}, false, 4);
  const auto out = call("rotary", {{"x", x}, {"angles", angles}, {"heads", 2}});
  EXPECT_EQ(error(out.at(0).toTensor(), rotary(x, angles, 2)), 0);
}

// --- Meta: shapes without data

Inputs to_meta(const Inputs& inputs) {
  Inputs meta;
  for (const auto& [name, tensor] : inputs)
    meta[name] = tensor.detach().to(at::kMeta).requires_grad_(true);
  return meta;
}

TEST(Meta, OutputsAndGradientsHaveTheShapesOfTheCpuForEveryMethod) {
  for (const auto& entry : kMethods)
    for (const bool rows : {false, true})
      for (const bool dropout : {false, true}) {
        auto config = image(entry.value);
        if (rows) config.rows = {0, 4, 6};
        if (dropout) config.dropout = 0.2;
        SCOPED_TRACE(config.str());
        Case c(config);
        const auto inputs = to_meta(c.inputs());
        const auto cpu = c.run();
        c.mask() = c.mask().to(at::kMeta);
        const auto meta = c.run(inputs);
        EXPECT_TRUE(meta.is_meta());
        EXPECT_EQ(meta.sizes(), cpu.sizes());
        EXPECT_EQ(meta.scalar_type(), cpu.scalar_type());
        const auto grads = gradients(c, inputs, at::empty_like(meta));
        EXPECT_EQ(grads.size(), inputs.size());
        for (const auto& [name, gradient] : grads) {
          EXPECT_TRUE(gradient.is_meta()) << name;
          EXPECT_EQ(gradient.sizes(), inputs.at(name).sizes()) << name;
        }
      }
}

TEST(Meta, TheCoreOpHasTheShapesOfTheCpuForEveryCombinationOfTerms) {
  for (const TermsConfig& config : all_terms()) {
    SCOPED_TRACE(config.str());
    TermsCase c(config);
    const auto cpu = c.attend(c.inputs());
    for (auto* mask : {&c.call().keep, &c.call().mask})
      if (mask->defined()) *mask = mask->to(at::kMeta);
    const auto inputs = to_meta(c.inputs());
    const auto meta = c.attend(inputs);
    EXPECT_EQ(meta.out.sizes(), cpu.out.sizes());
    EXPECT_EQ(meta.relative_out.sizes(), cpu.relative_out.sizes());
    EXPECT_EQ(meta.attention.sizes(), cpu.attention.sizes());
    EXPECT_EQ(meta.attention.strides(), cpu.attention.strides());
    EXPECT_EQ(meta.kept.sizes(), cpu.kept.sizes());
    EXPECT_TRUE(meta.out.is_meta() && meta.relative_out.is_meta() && meta.attention.is_meta());
    std::vector<at::Tensor> leaves;
    for (const auto& entry : inputs) leaves.push_back(entry.second);
    const auto grads = torch::autograd::grad({c.run(inputs).sum()}, leaves);
    for (size_t n = 0; n < leaves.size(); ++n) EXPECT_EQ(grads[n].sizes(), leaves[n].sizes());
  }
}

TEST(Meta, RotaryHasTheShapeOfItsInput) {
  const auto x = at::empty({2, 6, 8}, at::TensorOptions().device(at::kMeta)).requires_grad_(true);
  const auto out = rotary(x, rotary_angles({6}, false, 4), 2);
  EXPECT_TRUE(out.is_meta());
  EXPECT_EQ(out.sizes(), x.sizes());
  EXPECT_EQ(torch::autograd::grad({out.sum()}, {x})[0].sizes(), x.sizes());
}

}  // namespace
}  // namespace translution::testing
