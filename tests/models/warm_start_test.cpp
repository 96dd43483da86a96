#include "translution/models/warm_start.h"

#include <gmock/gmock.h>

#include "tests/models/tiny_models.h"
#include "translution/core/error.h"
#include "translution/models/cost.h"
#include "translution/nn/generator.h"

namespace translution::testing {

using namespace detail;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

ModelOptions with_method(ModelOptions model, Method method, const char* roles = "qkv") {
  model.position.method = method;
  model.position.roles = Roles::parse(roles);
  return model;
}

// The position embedding stays if the method is changed.
ModelOptions plain_vit() {
  auto model = with_method(tiny_vit(), Method::self_attention);
  model.input_embedding = true;
  return model;
}

Network random_network(const ModelOptions& model, uint64_t seed) {
  Network network(model, seeded_generator(seed));
  network.module().to(torch::kDouble);
  const auto generator = seeded_generator(seed + 1);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : network.module().parameters())  // also those that start at 0 or 1
    parameter.add_(torch::randn(parameter.sizes(), generator).to(torch::kDouble), 0.1);
  return network;
}

NamedTensors tensors_of(Network& network) {
  NamedTensors tensors;
  for (const auto& item : network.module().named_parameters())
    tensors[item.key()] = item.value().detach().clone();
  return tensors;
}

at::Tensor input_of(const ModelOptions& model) {
  return model.family == Family::vit ? random_images(2) : random_tokens(2, model.length);
}

struct Started {
  WarmStart plan;
  Network network;
  double difference;  // from the outputs of the old model; -1: of another shape
};

Started start(const ModelOptions& from, const ModelOptions& to, bool take_head = true) {
  auto old = random_network(from, 1), fresh = random_network(to, 2);
  const auto plan = start_from(fresh, from, tensors_of(old), "file", take_head);
  Started result{plan, fresh, -1};
  if (from.grid() != to.grid() || from.classes != to.classes) return result;
  const torch::NoGradGuard no_grad;
  const auto a = old.forward(input_of(from)), b = fresh.forward(input_of(to));
  result.difference = (a - b).abs().max().item<double>();
  return result;
}

std::vector<std::string> names_that(Start way, const WarmStart& plan) {
  std::vector<std::string> names;
  for (const auto& tensor : plan.tensors)
    if (tensor.start == way && tensor.name.rfind("backbone.blocks.1", 0) != 0)
      names.push_back(tensor.name);
  return names;
}

// Names in the first attention layer.
std::vector<std::string> in_layer(std::vector<std::string> names) {
  for (auto& name : names) name = "backbone.blocks.0.attention." + name;
  return names;
}

TEST(WarmStart, SelfAttentionContinuesWithTheSameOutputs) {
  int models = 0;
  for (const auto& [name, position] : every_position()) {
    const auto method = position.method;
    const bool adds_to_shared = method == Method::translution || method == Method::relative_key ||
                                method == Method::relative_value ||
                                method == Method::relative_bias ||
                                (method == Method::alpha_translution && position.shared_qkv &&
                                 position.mixing == Mixing::sum);
    if (!adds_to_shared || position.rotates()) continue;
    SCOPED_TRACE(name);
    ++models;
    auto vit = plain_vit(), gpt = tiny_gpt();
    gpt.position.method = Method::self_attention;
    gpt.input_embedding = true;
    for (const auto& from : {vit, gpt}) {
      auto to = from;
      to.position = position;
      const auto started = start(from, to);
      EXPECT_TRUE(started.plan.same_outputs);
      EXPECT_LT(started.difference, 1e-12);
    }
  }
  EXPECT_GT(models, 25);
}

// From every method to every other one: the outputs are the same wherever the plan says so.
TEST(WarmStart, ThePlanSaysWhereTheOutputsAreTheSame) {
  int same = 0;
  for (const auto& old : every_position())
    for (const auto& now : every_position()) {
      auto from = tiny_vit(old.position), to = tiny_vit(now.position);
      if (from.embeds_input()) from.input_embedding = to.input_embedding = true;
      if (!plan_warm_start(from, to, "file").same_outputs) continue;
      ++same;
      ASSERT_LT(start(from, to).difference, 1e-12) << old.name << " -> " << now.name;
    }
  EXPECT_GT(same, 100);
}

TEST(WarmStart, NewTermsHaveAGradient) {
  for (const char* roles : {"qkv", "k", "v"})
    for (const Method method : {Method::alpha_translution, Method::relative_key,
                                Method::relative_value, Method::relative_bias}) {
      SCOPED_TRACE(join(name_of(kMethods, method), " ", roles));
      auto started = start(plain_vit(), with_method(plain_vit(), method, roles));
      started.network.forward(random_images(2)).pow(2).sum().backward();
      const auto zero = names_that(Start::zero, started.plan);
      EXPECT_FALSE(zero.empty());
      const auto parameters = started.network.module().named_parameters();
      for (const auto& name : zero) {
        const auto& parameter = parameters[name];
        EXPECT_EQ(parameter.abs().max().item<double>(), 0) << name;
        EXPECT_GT(parameter.grad().abs().max().item<double>(), 0) << name;
      }
    }
}

TEST(WarmStart, NamesWhatIsTakenAndWhatIsNot) {
  const auto alpha = start(plain_vit(), with_method(plain_vit(), Method::alpha_translution)).plan;
  EXPECT_EQ(names_that(Start::zero, alpha), in_layer({"query_offsets", "value_offsets"}));
  EXPECT_EQ(names_that(Start::anew, alpha),
            in_layer({"query_down", "key_down", "key_offsets", "value_down", "value_up"}));
  EXPECT_THAT(names_that(Start::unused, alpha), IsEmpty());
  const auto full = start(plain_vit(), with_method(plain_vit(), Method::translution, "kv")).plan;
  EXPECT_EQ(names_that(Start::repeated, full), in_layer({"key", "value"}));
  EXPECT_THAT(names_that(Start::anew, full), IsEmpty());
  const auto window = start(plain_vit(), with_method(plain_vit(), Method::convolution)).plan;
  EXPECT_EQ(names_that(Start::anew, window), in_layer({"kernel"}));
  EXPECT_EQ(names_that(Start::unused, window), in_layer({"key", "query", "value"}));
  EXPECT_FALSE(window.same_outputs);
  int64_t counted = 0;
  for (const auto& tensor : window.tensors)
    if (tensor.start != Start::unused) counted += tensor.count;
  EXPECT_EQ(counted, model_cost(with_method(plain_vit(), Method::convolution)).parameters);
}

TEST(WarmStart, ARelativePartThatDoesNotFitStartsAtZeroBesideTheSharedMatrices) {
  const auto from = with_method(tiny_vit(), Method::alpha_translution);
  auto narrow = from;
  narrow.position.relative_dim = 3;
  auto started = start(from, narrow);
  EXPECT_FALSE(started.plan.same_outputs);
  EXPECT_EQ(names_that(Start::zero, started.plan), in_layer({"query_offsets", "value_offsets"}));
  EXPECT_EQ(names_that(Start::unused, started.plan).size(), 7u);
  auto values = from;
  values.position.roles = Roles::parse("v");
  EXPECT_EQ(names_that(Start::unused, start(from, values).plan),
            in_layer({"key_down", "key_offsets", "query_down", "query_offsets"}));
  EXPECT_THAT(names_that(Start::zero, start(from, values).plan), IsEmpty());
  const auto full = start(with_method(tiny_vit(), Method::translution), from).plan;
  EXPECT_EQ(names_that(Start::unused, full), in_layer({"key", "query", "value"}));
}

TEST(WarmStart, SaysWhichOptionsChangeTheOutputs) {
  const auto changes = [](const ModelOptions& to) { return start(plain_vit(), to).plan.changes; };
  EXPECT_THAT(changes(with_method(plain_vit(), Method::rotary)),
              ElementsAre("rotary in 2 layers (angles double) instead of off"));
  auto mean = with_method(plain_vit(), Method::alpha_translution);
  mean.position.mixing = Mixing::mean;
  EXPECT_THAT(changes(mean), ElementsAre("mixing mean instead of sum"));
  auto other = plain_vit();
  other.gelu = Gelu::tanh;
  other.norm_eps = 1e-6;
  EXPECT_THAT(changes(other),
              ElementsAre("gelu tanh instead of exact", "norm-eps 1e-06 instead of 1e-05"));
}

// load_tensors moves the weights of the same model.
TEST(WarmStart, MovesRowsToAnotherGridAsLoadTensorsDoes) {
  for (const auto& [name, position] : every_position()) {
    if (position.encoding == Encoding::absolute) continue;
    SCOPED_TRACE(name);
    auto from = tiny_vit(position), to = from;
    to.image_size = {20, 16};
    auto started = start(from, to);
    auto old = random_network(from, 1), expected = random_network(to, 3);
    load_tensors(expected.module(), tensors_of(old), from.grid());
    EXPECT_FALSE(started.plan.same_outputs);
    EXPECT_THAT(names_that(Start::anew, started.plan), IsEmpty());
    for (const auto& item : expected.module().named_parameters())
      EXPECT_TRUE(at::equal(item.value(), started.network.module().named_parameters()[item.key()]))
          << item.key();
  }
}

TEST(WarmStart, TablesOfTokenPairsStartAnewOnAnotherGrid) {
  auto from = tiny_vit();
  from.position.encoding = Encoding::absolute;
  auto to = from;
  to.image_size = {8, 8};
  EXPECT_EQ(names_that(Start::anew, start(from, to).plan), in_layer({"query", "key", "value"}));
}

TEST(WarmStart, ALongerTextMovesRowsOfPositions) {
  auto from = tiny_gpt();
  from.position.method = Method::self_attention;
  auto to = from;
  to.length = 9;
  auto started = start(from, to);
  EXPECT_THAT(names_that(Start::moved, started.plan), ElementsAre("position_embedding"));
  auto old = random_network(from, 1);
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(
      at::equal(old.forward(random_tokens(2, 7)), started.network.forward(random_tokens(2, 7))))
      << "earlier tokens do not see later ones";
}

TEST(WarmStart, TheHeadStartsAnewForOtherClasses) {
  auto to = plain_vit();
  to.classes = 3;
  auto started = start(plain_vit(), to);
  EXPECT_THAT(names_that(Start::anew, started.plan), ElementsAre("head.weight", "head.bias"));
  EXPECT_FALSE(started.plan.same_outputs);
  started = start(plain_vit(), plain_vit(), /*take_head=*/false);
  EXPECT_THAT(names_that(Start::anew, started.plan), ElementsAre("head.weight", "head.bias"));
  auto fresh = random_network(plain_vit(), 2);
  EXPECT_TRUE(at::equal(fresh.vit()->head->weight, started.network.vit()->head->weight));
}

TEST(WarmStart, BiasesOfQueriesKeysAndValuesAreTakenAndNewOnesAreZero) {
  auto biased = plain_vit();
  biased.qkv_bias = true;
  for (const Method method : {Method::self_attention, Method::relative_bias,
                              Method::alpha_translution, Method::translution})
    for (const char* roles : {"qkv", "k", "qv"}) {
      SCOPED_TRACE(join(name_of(kMethods, method), " ", roles));
      const auto started = start(biased, with_method(biased, method, roles));
      EXPECT_TRUE(started.plan.same_outputs);
      EXPECT_THAT(names_that(Start::unused, started.plan), IsEmpty());
      EXPECT_LT(started.difference, 1e-12);
    }
  const auto added = start(plain_vit(), biased);
  EXPECT_EQ(names_that(Start::zero, added.plan),
            in_layer({"query_bias", "key_bias", "value_bias"}));
  EXPECT_LT(added.difference, 1e-12);
  EXPECT_EQ(names_that(Start::unused, start(biased, plain_vit()).plan),
            in_layer({"key_bias", "query_bias", "value_bias"}));
}

TEST(WarmStart, MatricesPerOffsetGainAndLoseTheirBiasRow) {
  const auto bare = with_method(tiny_vit(), Method::translution);
  auto biased = bare;
  biased.qkv_bias = true;
  auto started = start(bare, biased);
  EXPECT_TRUE(started.plan.same_outputs);
  EXPECT_LT(started.difference, 1e-12);
  started = start(biased, bare);
  EXPECT_THAT(started.plan.changes, ElementsAre("qkv-bias off instead of on"));
  const auto name = in_layer({"query"}).front();
  auto old = random_network(biased, 1);
  const auto parameters = started.network.module().named_parameters();
  EXPECT_TRUE(at::equal(parameters[name], tensors_of(old).at(name).narrow(1, 0, 12)));
  auto larger = biased;
  larger.image_size = {20, 16};
  const auto moved = start(bare, larger);
  EXPECT_EQ(names_that(Start::moved, moved.plan), in_layer({"query", "key", "value"}));
}

TEST(WarmStart, RefusesAnotherModel) {
  const auto refusal = [](const ModelOptions& from, const ModelOptions& to) {
    return [=] { plan_warm_start(from, to, "file"); };
  };
  using Refused = std::invalid_argument;
  auto deep = plain_vit();
  deep.architecture = architecture_of(3, 12, 2, 20, 8);
  EXPECT_THAT(refusal(plain_vit(), deep),
              ThrowsMessage<Refused>(HasSubstr("file: expected weights of vit-3x12x2x20x8/4, ")));
  EXPECT_THAT(refusal(tiny_gpt(), plain_vit()),
              ThrowsMessage<Refused>(HasSubstr("got those of gpt-tiny-7; use the same")));
  auto patches = plain_vit();
  patches.patch_size = 2;
  EXPECT_THAT(refusal(plain_vit(), patches), ThrowsMessage<Refused>(HasSubstr("patch size")));
  auto grey = plain_vit();
  grey.channels = 1;
  EXPECT_THAT(refusal(plain_vit(), grey),
              ThrowsMessage<Refused>("file: expected weights for images with 1 channel, got 2 "
                                     "channels; use other data, or other weights"));
  auto words = tiny_gpt();
  words.vocabulary = 12;
  EXPECT_THAT(refusal(tiny_gpt(), words),
              ThrowsMessage<Refused>(HasSubstr("file: expected a vocabulary of 12, got 11; ")));
}

TEST(WarmStart, RefusesTensorsOfAnotherShapeAndNetworksWithoutWeights) {
  auto old = random_network(plain_vit(), 1);
  auto tensors = tensors_of(old);
  tensors["head.bias"] = torch::zeros({6});
  EXPECT_THAT([&] { start_from(old, plain_vit(), tensors, "file"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("file: tensor 'head.bias' is [6]")));
  auto options = plain_vit();
  options.init = Init::none;
  Network empty(options);
  EXPECT_THAT([&] { start_from(empty, plain_vit(), tensors_of(old), "file"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("expected an initialised network")));
}

}  // namespace
}  // namespace translution::testing
