#include "translution/nn/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/init.h>

#include <cmath>

#include "tests/nn/positions.h"

namespace translution {
namespace {

using Shape = std::vector<int64_t>;
using NamedShapes = std::vector<std::pair<std::string, Shape>>;

// dim 6, 3 heads of 4: a 2x3 grid with class token has 3*5+3 = 18 slots.
AttentionOptions tiny(const Position& position = {}) {
  return AttentionOptions(6).heads(3).dim_head(4).grid({2, 3}).cls(true).position(position);
}

AttentionOptions tiny_text(const Position& position) {
  return AttentionOptions(6).heads(3).dim_head(4).grid({7}).causal(true).position(position);
}

NamedShapes shapes_of(torch::nn::Module& module) {
  NamedShapes shapes;
  for (const auto& parameter : module.named_parameters())
    shapes.emplace_back(parameter.key(), parameter.value().sizes().vec());
  return shapes;
}

NamedShapes shapes_of(const Position& position) { return shapes_of(*build_layer(tiny(position))); }

// Adds the output projection that every layer has.
NamedShapes with_output(NamedShapes shapes) {
  shapes.push_back({"out.weight", {6, 12}});
  shapes.push_back({"out.bias", {6}});
  return shapes;
}

Position of(Method method) {
  Position position;
  position.method = method;
  return position;
}

const NamedShapes kShared{{"query", {6, 12}}, {"key", {6, 12}}, {"value", {6, 12}}};

NamedShapes shared_and(const NamedShapes& more) {
  NamedShapes shapes = kShared;
  shapes.insert(shapes.end(), more.begin(), more.end());
  return with_output(shapes);
}

TEST(AttentionParameters, OfEveryMethodHaveTheDocumentedShapes) {
  for (const Method plain : {Method::self_attention_no_pos, Method::self_attention, Method::rotary})
    EXPECT_EQ(shapes_of(of(plain)), shared_and({}));
  EXPECT_EQ(shapes_of(of(Method::relative_key)), shared_and({{"key_vectors", {18, 12}}}));
  EXPECT_EQ(shapes_of(of(Method::relative_value)), shared_and({{"value_vectors", {18, 12}}}));
  EXPECT_EQ(shapes_of(of(Method::relative_bias)), shared_and({{"bias", {18, 3}}}));
  EXPECT_EQ(shapes_of(of(Method::gated_position)),
            shared_and({{"position_weight", {6, 3}}, {"gate", {3}}}));
  EXPECT_EQ(shapes_of(of(Method::translution)),
            with_output({{"query", {18, 6, 12}}, {"key", {18, 6, 12}}, {"value", {18, 6, 12}}}));
  EXPECT_EQ(shapes_of(of(Method::alpha_translution)), shared_and({{"query_down", {6, 24}},
                                                                  {"query_offsets", {18, 24, 24}},
                                                                  {"key_down", {6, 24}},
                                                                  {"key_offsets", {18, 24, 24}},
                                                                  {"value_down", {6, 24}},
                                                                  {"value_offsets", {18, 24, 24}},
                                                                  {"value_up", {24, 12}}}));
  EXPECT_EQ(shapes_of(of(Method::convolution)), with_output({{"kernel", {3 * 3 + 3, 6, 12}}}));
}

TEST(AttentionParameters, OfARoleThatIsNotRelativeHaveNoSlots) {
  auto position = of(Method::translution);
  position.roles = Roles::parse("v");
  EXPECT_EQ(shapes_of(position),
            with_output({{"query", {6, 12}}, {"key", {6, 12}}, {"value", {18, 6, 12}}}));
  position.method = Method::alpha_translution;
  EXPECT_EQ(shapes_of(position), shared_and({{"value_down", {6, 24}},
                                             {"value_offsets", {18, 24, 24}},
                                             {"value_up", {24, 12}}}));
}

TEST(AttentionParameters, OfAlphaWithoutSharedQkvHaveNoSharedMatrices) {
  auto position = of(Method::alpha_translution);
  position.shared_qkv = false;
  position.relative_dim = 2;
  position.roles = Roles::parse("k");
  EXPECT_EQ(shapes_of(position), with_output({{"query_down", {6, 6}},
                                              {"key_down", {6, 6}},
                                              {"key_offsets", {18, 6, 6}},
                                              {"value_down", {6, 6}},
                                              {"value_up", {6, 12}}}));
}

// C^1 = 2 and C^2 = 5 channels for each of 3 heads; a role without a table projects to C^2
// directly.
TEST(AttentionParameters, OfAlphaWithTwoWidthsAreAsInThePaper) {
  auto position = of(Method::alpha_translution);
  position.relative_dim = 2;
  position.relative_dim_out = 5;
  EXPECT_EQ(shapes_of(position), shared_and({{"query_down", {6, 6}},
                                             {"query_offsets", {18, 6, 15}},
                                             {"key_down", {6, 6}},
                                             {"key_offsets", {18, 6, 15}},
                                             {"value_down", {6, 6}},
                                             {"value_offsets", {18, 6, 15}},
                                             {"value_up", {15, 12}}}));
  position.roles = Roles::parse("q");
  EXPECT_EQ(
      shapes_of(position),
      shared_and({{"query_down", {6, 6}}, {"query_offsets", {18, 6, 15}}, {"key_down", {6, 15}}}));
  position.shared_qkv = false;
  EXPECT_EQ(shapes_of(position), with_output({{"query_down", {6, 6}},
                                              {"query_offsets", {18, 6, 15}},
                                              {"key_down", {6, 15}},
                                              {"value_down", {6, 15}},
                                              {"value_up", {15, 12}}}));
}

TEST(AttentionParameters, AreListedWithoutBeingAllocated) {
  for (const auto& [name, position] : every_position()) {
    NamedShapes listed;
    for (const auto& spec : attention_parameters(tiny(position)))
      listed.emplace_back(spec.name, spec.shape);
    EXPECT_EQ(with_output(listed), shapes_of(position)) << name;
  }
}

// --- initialisation

// The largest magnitude is within the bound and close to it.
void expect_bound(const at::Tensor& weight, double bound, const std::string& name) {
  const double largest = weight.abs().max().item<double>();
  EXPECT_LE(largest, bound * (1 + 1e-6)) << name;
  EXPECT_GE(largest, bound * 0.9) << name;
}

TEST(Init, ScaledBoundsEveryMatrixByItsInputs) {
  const auto layer = build_layer(tiny(of(Method::alpha_translution)));
  for (const auto& spec : attention_parameters(layer->options))
    expect_bound(layer->named_parameters()[spec.name], 1 / std::sqrt(spec.shape.end()[-2]),
                 spec.name);
}

TEST(Init, AuthorsBoundsTablesByInputsTimesOutputs) {
  const auto layer = build_layer(tiny(of(Method::alpha_translution)).init(Init::authors));
  for (const auto& spec : attention_parameters(layer->options)) {
    const double in = spec.shape.end()[-2], out = spec.shape.end()[-1];
    expect_bound(layer->named_parameters()[spec.name],
                 1 / std::sqrt(spec.shape.size() == 3 ? in * out : in), spec.name);
  }
}

TEST(Init, VectorsPerOffsetAreSmall) {
  for (const char* name : {"key_vectors", "value_vectors", "bias"}) {
    const auto method = name[0] == 'k'   ? Method::relative_key
                        : name[0] == 'v' ? Method::relative_value
                                         : Method::relative_bias;
    const auto weight = build_layer(tiny(of(method)))->named_parameters()[name];
    EXPECT_NEAR(weight.std().item<double>(), 0.02, 0.006) << name;
  }
}

TEST(Init, TheGateIsOpenAndThePositionalAttentionLocal) {
  const auto parameters = build_layer(tiny(of(Method::gated_position)))->named_parameters();
  EXPECT_TRUE(parameters["gate"].eq(1).all().item<bool>());
  EXPECT_TRUE(parameters["position_weight"][0].eq(-1).all().item<bool>());
}

// --- forward

TEST(AttentionForward, OfSomeRowsGivesThoseRowsOfTheFullResult) {
  const auto rows = torch::tensor({3, 0, 5, 3}, torch::kLong);
  for (const auto& [name, position] : every_position()) {
    for (const auto& options : {tiny(position), tiny_text(position)}) {
      auto layer = build_layer(options);
      const auto x = random_input(7);
      const auto [full, map] = layer->forward_with_map(x);
      const auto [some, map_of_some] = layer->forward_with_map(x, rows);
      EXPECT_EQ(full.sizes(), x.sizes()) << name;
      EXPECT_EQ(map.sizes(), (Shape{2, 3, 7, 7})) << name;
      EXPECT_TRUE(agree(some, full.index_select(1, rows))) << name;
      EXPECT_TRUE(agree(map_of_some, map.index_select(2, rows))) << name;
      EXPECT_TRUE(agree(layer->forward(x, rows), some)) << name;
    }
  }
}

TEST(AttentionForward, OfACausalLayerDoesNotSeeLaterTokens) {
  for (const auto& [name, position] : every_position()) {
    auto layer = build_layer(tiny_text(position));
    const auto x = random_input(7);
    auto changed = x.clone();
    changed.narrow(1, 4, 3).normal_();
    const auto before = layer(x), after = layer(changed);
    EXPECT_TRUE(agree(before.narrow(1, 0, 4), after.narrow(1, 0, 4))) << name;
    EXPECT_FALSE(agree(before.narrow(1, 4, 3), after.narrow(1, 4, 3))) << name;
    EXPECT_TRUE(agree(layer(x.narrow(1, 0, 4)), before.narrow(1, 0, 4))) << name;
  }
}

TEST(AttentionForward, AndGradientsHaveTheSameBitsForAnyWorkspace) {
  std::vector<std::vector<at::Tensor>> results;
  for (const int64_t workspace : {int64_t{0}, int64_t{1} << 30}) {
    torch::manual_seed(kSeed);
    Translution layer(
        AttentionOptions(64).heads(2).dim_head(32).grid({3, 4}).cls(true).workspace(workspace));
    const auto x = torch::randn({5, 13, 64});
    const auto y = layer->forward(x);
    y.square().sum().backward();
    results.push_back({y.detach()});
    for (const auto& parameter : layer->parameters()) results.back().push_back(parameter.grad());
  }
  for (size_t n = 0; n < results[0].size(); ++n)
    EXPECT_TRUE(torch::equal(results[0][n], results[1][n])) << "tensor " << n;
}

TEST(AttentionForward, TakesAnEmptyBatch) {
  for (const auto& [name, position] : every_method()) {
    auto layer = build_layer(tiny(position));
    EXPECT_EQ(layer(torch::zeros({0, 7, 6}, torch::kDouble)).sizes(), (Shape{0, 7, 6})) << name;
  }
}

TEST(AttentionForward, OfNamedLayersEqualsThatOfTheirMethods) {
  const auto x = random_input(7);
  torch::manual_seed(kSeed);
  Translution full(tiny());
  full->to(torch::kDouble);
  EXPECT_TRUE(same_bits(full(x), build_layer(tiny(of(Method::translution)))(x)));
  torch::manual_seed(kSeed);
  AlphaTranslution alpha(tiny());
  alpha->to(torch::kDouble);
  EXPECT_TRUE(same_bits(alpha(x), build_layer(tiny(of(Method::alpha_translution)))(x)));
}

TEST(AttentionMap, OfAGateIsTheMixtureOfContentAndPosition) {
  auto layer = build_layer(tiny(of(Method::gated_position)));
  const auto x = random_input(7);
  const auto p = layer->named_parameters();
  {
    torch::NoGradGuard no_grad;
    p["gate"].copy_(torch::tensor({-1.5, 0.25, 2.0}));
  }
  const auto heads = [&](const char* role) {
    return x.matmul(p[role]).view({2, 7, 3, 4}).transpose(1, 2);  // [B,H,N,D]
  };
  const auto content = heads("query").matmul(heads("key").transpose(-1, -2)).div(2).softmax(-1);
  // Features of an offset: squared length, coordinates, then one per slot of the class token.
  auto features = torch::zeros({7, 7, 6}, torch::kDouble);
  for (int64_t i = 0; i < 7; ++i) {
    for (int64_t j = 0; j < 7; ++j) {
      auto f = features[i][j];
      if (i == 0 || j == 0) {
        f[i == 0 && j == 0 ? 3 : i == 0 ? 4 : 5] = 1;
        continue;
      }
      const int64_t dy = (i - 1) / 3 - (j - 1) / 3, dx = (i - 1) % 3 - (j - 1) % 3;
      f[0] = dy * dy + dx * dx, f[1] = dy, f[2] = dx;
    }
  }
  const auto positional = features.matmul(p["position_weight"]).permute({2, 0, 1}).softmax(-1);
  const auto gate = p["gate"].sigmoid().view({1, 3, 1, 1});
  EXPECT_TRUE(agree(layer->forward_with_map(x).second, (1 - gate) * content + gate * positional));
}

TEST(AttentionMap, OfAConvolutionIsOneInsideTheWindow) {
  const auto map =
      build_layer(tiny_text(of(Method::convolution)))->forward_with_map(random_input(7));
  const auto ones = torch::ones({7, 7}, torch::kDouble);
  EXPECT_TRUE(same_bits(map.second, ones.tril().triu(-1).expand({2, 3, 7, 7})));
}

// --- relations

std::shared_ptr<const OffsetTable> as_relation(const OffsetTable& table) {
  std::vector<int64_t> slots;
  for (int64_t i = 0; i < table.num_tokens(); ++i)
    for (int64_t j = 0; j < table.num_tokens(); ++j) slots.push_back(table.slot(i, j));
  return std::make_shared<const OffsetTable>(
      OffsetTable::from_relation(slots, table.num_tokens(), table.num_slots(), table.mirror()));
}

TEST(AttentionRelation, EqualToAGridComputesTheSame) {
  for (const auto& [name, position] : every_position()) {
    if (!position.uses_offsets() || position.rotates() || position.method == Method::gated_position)
      continue;
    auto layer = build_layer(tiny(position));
    auto options = tiny(position).grid({}).cls(false);
    auto related = build_layer(options.relation(as_relation(*layer->offsets())));
    EXPECT_EQ(related->offsets(), related->options.relation()) << name;
    const auto x = random_input(7);
    EXPECT_TRUE(agree(related(x), layer(x))) << name;
  }
}

TEST(AttentionRelation, LeavesOutLaterTokensInACausalLayer) {
  const auto all = std::make_shared<const OffsetTable>(
      OffsetTable::from_relation(std::vector<int64_t>(25, 0), 5, 1));
  for (const Method method : {Method::translution, Method::convolution}) {
    auto options = tiny(of(method)).grid({}).cls(false).causal(true).relation(all);
    const auto [out, map] = build_layer(options)->forward_with_map(random_input(5));
    EXPECT_EQ(map.triu(1).count_nonzero().item<int64_t>(), 0) << name_of(kMethods, method);
    EXPECT_GT(map.tril().count_nonzero().item<int64_t>(), 0) << name_of(kMethods, method);
  }
}

// --- dropout, copies

TEST(AttentionDropout, ChangesTheOutputInTrainingButNotTheMap) {
  for (const auto& [name, position] : every_method()) {
    auto layer = build_layer(tiny(position).dropout(0.5));
    const auto x = random_input(7);
    layer->eval();
    const auto [expected, map] = layer->forward_with_map(x);
    EXPECT_TRUE(same_bits(layer(x), expected)) << name;
    layer->train();
    torch::manual_seed(kSeed);
    const auto [dropped, same_map] = layer->forward_with_map(x);
    EXPECT_EQ(agree(dropped, expected), position.method == Method::convolution) << name;
    EXPECT_TRUE(agree(map, same_map)) << name;
  }
}

TEST(AttentionClone, ComputesTheSameWithItsOwnWeights) {
  for (const auto& [name, position] : every_position()) {
    auto layer = build_layer(tiny(position));
    const auto x = random_input(7);
    const auto copy = std::dynamic_pointer_cast<AttentionImpl>(layer->clone());
    ASSERT_TRUE(copy) << name;
    EXPECT_EQ(shapes_of(*copy), shapes_of(*layer)) << name;
    const auto before = layer(x);
    EXPECT_TRUE(same_bits(copy->forward(x), before)) << name;
    torch::NoGradGuard no_grad;
    for (auto& parameter : layer->parameters()) parameter.zero_();
    EXPECT_TRUE(same_bits(copy->forward(x), before)) << name;
  }
}

void copy_weights(const Attention& from, Attention& to) {
  torch::NoGradGuard no_grad;
  for (auto& parameter : to->named_parameters())
    parameter.value().copy_(from->named_parameters()[parameter.key()]);
}

TEST(AttentionWithoutAGrid, TakesAnyNumberOfTokens) {
  auto unbound = build_layer(
      AttentionOptions(6).heads(3).dim_head(4).position(of(Method::self_attention_no_pos)));
  for (const int64_t tokens : {1, 7, 12}) {
    auto bound = build_layer(AttentionOptions(6).heads(3).dim_head(4).grid({tokens}).position(
        of(Method::self_attention_no_pos)));
    copy_weights(unbound, bound);
    const auto x = random_input(tokens);
    EXPECT_TRUE(at::equal(unbound->forward(x), bound->forward(x)));
  }
}

// A bias equals the weight of a constant input channel of ones.
TEST(AttentionWithBias, EqualsALayerWithAConstantChannel) {
  for (const auto method : {Method::self_attention, Method::rotary, Method::relative_key}) {
    const auto options = tiny(of(method)).dim_head(8);
    auto biased = build_layer(AttentionOptions(options).qkv_bias(true));
    auto wider = build_layer(AttentionOptions(options).dim(7));
    torch::NoGradGuard no_grad;
    for (const std::string role : {"query", "key", "value"}) {
      auto bias = biased->named_parameters()[role + "_bias"];
      EXPECT_TRUE(bias.eq(0).all().item<bool>());
      bias.normal_();
      wider->named_parameters()[role].copy_(
          at::cat({biased->named_parameters()[role], bias.unsqueeze(0)}));
    }
    if (method == Method::relative_key)
      wider->named_parameters()["key_vectors"].copy_(biased->named_parameters()["key_vectors"]);
    wider->out->weight.narrow(0, 0, 6).copy_(biased->out->weight);
    wider->out->bias.narrow(0, 0, 6).copy_(biased->out->bias);
    const auto x = random_input(7);
    const auto expected = wider->forward(at::cat({x, at::ones({2, 7, 1}, at::kDouble)}, -1));
    EXPECT_TRUE(at::allclose(biased->forward(x), expected.narrow(-1, 0, 6), 1e-12, 1e-12));
  }
}

}  // namespace
}  // namespace translution
