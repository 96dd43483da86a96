// A layer whose slots are split between ranks is the whole layer. The ranks are threads.

#include <gtest/gtest.h>

#include <map>

#include "tests/models/tiny_models.h"
#include "tests/support/filled.h"
#include "tests/support/portable_only.h"
#include "tests/support/thread_group.h"
#include "translution/models/cost.h"
#include "translution/models/network.h"
#include "translution/nn/generator.h"
#include "translution/nn/regrid.h"
#include "translution/ops/runtime.h"

namespace translution {
namespace {

using testing::filled;
using testing::ThreadGroup;

constexpr int64_t kChannels = 6;

// One step of a layer: its result and all gradients.
struct Step {
  std::map<std::string, at::Tensor> weights, gradients;
  at::Tensor out;
};

struct Problem {
  AttentionOptions options{kChannels};
  torch::Dtype dtype = at::kDouble;
  int64_t batch = 2, tokens = 0;
  std::vector<int64_t> rows, grid;
  bool mask = false;
};

AttendOptions call_of(const Problem& p) {
  AttendOptions call;
  if (!p.rows.empty()) call.rows = at::tensor(p.rows, at::kLong);
  call.grid = p.grid;
  if (p.mask) {  // the last two tokens of sample 0 and token 1 of sample 1 are padding
    call.key_padding_mask = at::ones({p.batch, p.tokens}, at::kBool);
    call.key_padding_mask[0].narrow(0, p.tokens - 2, 2).fill_(false);
    call.key_padding_mask[1][1].fill_(false);
  }
  call.generator = seeded_generator(kSeed + 1);
  return call;
}

Step step(const Problem& p, const SlotShare& share) {
  auto options = p.options;
  Attention layer(options.share(share), seeded_generator(kSeed));
  layer->to(p.dtype);
  auto x = filled("x", {p.batch, p.tokens, p.options.dim()}, 1).to(p.dtype).requires_grad_();
  const auto out = layer->forward(x, call_of(p));
  (out * filled("d", out.sizes(), 1).to(p.dtype)).sum().backward();
  Step result;
  result.out = out.detach();
  result.gradients["x"] = x.grad();
  for (const auto& item : layer->named_parameters()) {
    result.weights[item.key()] = item.value().detach();
    if (item.value().grad().defined()) result.gradients[item.key()] = item.value().grad();
  }
  return result;
}

double tolerance(const Problem& p) {
  if (p.options.precision() == Precision::bf16) return 0.02;
  return p.dtype == at::kDouble ? 1e-12 : 1e-5;
}

void expect_near(const at::Tensor& got, const at::Tensor& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  const auto largest = std::max(1.0, expected.abs().max().item<double>());
  EXPECT_LE((got - expected).abs().max().item<double>(), tolerance * largest) << what;
}

// The rows of the whole tensor that the rank has.
at::Tensor own_rows(const at::Tensor& whole, const std::string& name,
                    const std::map<std::string, TableRows>& tables) {
  const auto found = tables.find(name);
  if (found == tables.end()) return whole;
  EXPECT_EQ(found->second.all, whole.size(0));
  return whole.index_select(0, at::tensor(found->second.rows, at::kLong));
}

void expect_whole(const Problem& p, int64_t ranks) {
  SCOPED_TRACE(
      detail::join(ranks, " ranks, ", p.dtype, " ", name_of(kPrecisions, p.options.precision())));
  const auto whole = step(p, {});
  ThreadGroup group(ranks);
  std::vector<Step> steps(ranks);
  group.run([&](int64_t rank) { steps[rank] = step(p, {{rank, ranks}, group.name(rank)}); });
  for (int64_t rank = 0; rank < ranks; ++rank) {
    auto options = p.options;
    const auto tables = table_rows(options.share({{rank, ranks}}));
    expect_near(steps[rank].out, whole.out, tolerance(p), "out");
    EXPECT_TRUE(same_bits(steps[rank].out, steps[0].out));
    for (const auto& [name, weight] : whole.weights)
      EXPECT_TRUE(same_bits(steps[rank].weights.at(name), own_rows(weight, name, tables))) << name;
    ASSERT_EQ(steps[rank].gradients.size(), whole.gradients.size());
    for (const auto& [name, gradient] : whole.gradients) {
      const auto& got = steps[rank].gradients.at(name);
      expect_near(got, own_rows(gradient, name, tables), tolerance(p), name);
      if (tables.count(name) == 0) {
        EXPECT_TRUE(same_bits(got, steps[0].gradients.at(name))) << name;
      }
    }
  }
}

AttentionOptions layer_of(const Position& position, const std::vector<int64_t>& grid,
                          bool cls = false, bool causal = false) {
  return AttentionOptions(kChannels)
      .heads(3)
      .dim_head(8)
      .grid(grid)
      .cls(cls)
      .causal(causal)
      .position(position);
}

Problem problem_of(const AttentionOptions& options) {
  Problem p;
  p.options = options;
  p.tokens = count_tokens({options.grid(), options.cls()});
  return p;
}

// Whether its slots, if they are split, are enough for the ranks.
bool has_slots_for(const AttentionOptions& options, int64_t ranks) {
  for (const auto& spec : attention_parameters(options))
    if (spec.is_split() && spec.shape[0] < ranks) return false;
  return true;
}

// One of each kind of split: every pair of content and relative terms.
std::vector<NamedPosition> split_positions() {
  std::vector<NamedPosition> split;
  for (const auto& named : every_position())
    if (named.name == "translution" || named.name == "translution v" ||
        named.name == "translution qk" || named.name == "translution absolute" ||
        named.name == "translution direction" || named.name == "alpha_translution" ||
        named.name == "alpha_translution qkv alone" || named.name == "alpha_translution v" ||
        named.name == "convolution")
      split.push_back(named);
  return split;
}

TEST(OffsetParallel, EveryMethodIsTheWholeLayer) {
  for (const auto& [name, position] : every_position())
    for (const bool cls : {false, true})
      for (const bool causal : {false, true})
        for (const int64_t ranks : {2, 3, 4}) {
          SCOPED_TRACE(detail::join(name, cls ? " cls" : "", causal ? " causal" : ""));
          auto p = problem_of(layer_of(position, {3, 2}, cls, causal));
          if (has_slots_for(p.options, ranks)) expect_whole(p, ranks);
        }
}

TEST(OffsetParallel, InFloat32AndBfloat16IsTheWholeLayer) {
  for (const auto& [name, position] : split_positions())
    for (const auto precision : {Precision::float32, Precision::bf16})
      for (const int64_t batch : {2, 16}) {  // 16: the batch is the last dimension
        SCOPED_TRACE(detail::join(name, " batch ", batch));
        auto p = problem_of(layer_of(position, {3, 3}, /*cls=*/true).precision(precision));
        p.dtype = at::kFloat;
        p.batch = batch;
        expect_whole(p, 2);
      }
}

TEST(OffsetParallel, OnAWindowOrABucketIsTheWholeLayer) {
  for (const Method method : {Method::translution, Method::alpha_translution})
    for (const auto sharing : {Sharing::direction, Sharing::logarithmic, Sharing::window})
      for (const bool causal : {false, true}) {
        Position position;
        position.method = method;
        const OffsetOptions offsets{{9}, false, causal, Encoding::relative, sharing, 1};
        const auto table = std::make_shared<const OffsetTable>(offsets);
        SCOPED_TRACE(pairs_text(offsets));
        const auto p = problem_of(layer_of(position, {9}, false, causal).relation(table));
        for (const int64_t ranks : {2, 3})
          if (has_slots_for(p.options, ranks)) expect_whole(p, ranks);
      }
}

TEST(OffsetParallel, WithQueryRowsAMaskDropoutAndBiasesIsTheWholeLayer) {
  for (const auto& [name, position] : split_positions()) {
    SCOPED_TRACE(name);
    auto options = layer_of(position, {3, 3}, /*cls=*/true).dropout(0.25);
    if (position.takes_qkv_bias()) options.qkv_bias(true);
    auto p = problem_of(options);
    p.mask = true;
    expect_whole(p, 3);
    p.rows = {0};
    expect_whole(p, 3);
    p.rows = {4, 2, 7};
    expect_whole(p, 4);
  }
}

// A query, or every query, may have no pair with a slot of a rank.
TEST(OffsetParallel, OnASmallerGridIsTheWholeLayer) {
  for (const auto& [name, position] : split_positions()) {
    SCOPED_TRACE(name);
    auto image = problem_of(layer_of(position, {3, 3}, /*cls=*/true));
    image.grid = {2, 1}, image.tokens = 3;
    expect_whole(image, 4);
    auto text = problem_of(layer_of(position, {8}, /*cls=*/false, /*causal=*/true));
    for (const int64_t tokens : {1, 5}) {
      text.tokens = tokens;
      if (has_slots_for(text.options, 4)) expect_whole(text, 4);
    }
  }
}

TEST(OffsetParallel, WithEncodingsKeptForBackwardIsTheWholeLayer) {
  for (const bool causal : {false, true}) {
    auto p = problem_of(AttentionOptions(70).heads(2).dim_head(40).grid({9}).causal(causal));
    p.dtype = at::kFloat;
    expect_whole(p, 2);
    p.options.precision(Precision::bf16);
    expect_whole(p, 2);
  }
}

TEST(OffsetParallel, OfPlainLibTorchCallsIsTheWholeLayer) {
  const PortableOnly portable;
  for (const auto& [name, position] : every_position()) {
    SCOPED_TRACE(name);
    auto p = problem_of(layer_of(position, {3, 2}, /*cls=*/true).dropout(0.25));
    p.mask = true;
    if (has_slots_for(p.options, 3)) expect_whole(p, 3);
    if (position.encoding == Encoding::absolute) continue;
    p.mask = false;
    p.grid = {1, 2}, p.tokens = 3;
    if (has_slots_for(p.options, 4)) expect_whole(p, 4);
  }
}

TEST(OffsetParallel, OfARelationIsTheWholeLayer) {
  const auto table = std::make_shared<const OffsetTable>(
      OffsetTable::from_relation({0, 1, 1, 2, 0, -1, 2, -1, 0}, 3, 4, {0, 2, 1, 3}));
  for (const bool causal : {false, true}) {
    auto p = problem_of(layer_of({}, {3}).relation(table).causal(causal));
    expect_whole(p, 2);
    expect_whole(p, 4);
  }
}

// Numbers that each rank passes to the sum, as docs/op.md counts them.
TEST(OffsetParallel, SumsTheDocumentedNumbers) {
  const auto summed = [](const Problem& p) {
    ThreadGroup group(2);
    group.run([&](int64_t rank) { step(p, {{rank, 2}, group.name(rank)}); });
    return group.numbers();
  };
  const auto of = [](Method method) {
    Position position;
    position.method = method;
    return position;
  };
  constexpr int64_t B = 2, N = 9, H = 3, C = kChannels, W = 3 * 8;
  for (const bool causal : {false, true}) {
    const int64_t pairs = causal ? N * (N + 1) / 2 : N * N;
    const auto full = problem_of(layer_of(of(Method::translution), {9}, false, causal));
    EXPECT_EQ(summed(full), B * (H * pairs + N * W + H * N + N * C));
    const auto alpha = problem_of(layer_of(of(Method::alpha_translution), {9}, false, causal));
    EXPECT_EQ(summed(alpha), B * (2 * H * pairs + N * W + 3 * N * W));  // relative_dim is dim_head
  }
  EXPECT_EQ(summed(problem_of(layer_of(of(Method::convolution), {9}))), B * (N * W + N * C));
  EXPECT_EQ(summed(problem_of(layer_of(of(Method::relative_bias), {9}))), 0);
}

// Products of tables are shared by the ranks. Only the output projection is not.
TEST(OffsetParallel, ARankOfTwoComputesHalfOfTheProducts) {
  const auto unsummed = register_group("a rank alone", [](const auto&) {});
  auto p = problem_of(AttentionOptions(64).heads(2).dim_head(32).grid({36}));
  p.dtype = at::kFloat;
  const auto flops = [&](const SlotShare& share) {
    const int64_t before = runtime().product_flops();
    step(p, share);
    return static_cast<double>(runtime().product_flops() - before);
  };
  const double whole = flops({});
  for (const int64_t rank : {0, 1})
    EXPECT_NEAR(flops({{rank, 2}, "a rank alone"}) / whole, 0.5, 0.05);
}

// The last block of a ViT computes one query, which has no pairs with the slots of some ranks.
TEST(OffsetParallel, AModelIsTheWholeModel) {
  const auto images = random_images(2), tokens = random_tokens(2, 6);
  const auto step_of = [&](const ModelOptions& options) {
    const auto& input = options.family == Family::vit ? images : tokens;
    Network network(options, seeded_generator(kSeed));
    network.module().to(torch::kDouble);
    const auto logits = network.forward(input, seeded_generator(kSeed));
    (logits * filled("d", logits.sizes(), 1)).sum().backward();
    std::map<std::string, at::Tensor> results{{"logits", logits.detach()}};
    for (const auto& item : network.module().named_parameters())
      results[item.key()] = item.value().grad();
    return std::pair(results, network.table_rows());
  };
  for (const auto& [name, position] : split_positions())
    for (auto options : {tiny_vit(position), tiny_gpt(position)}) {
      SCOPED_TRACE(detail::join(name, " ", options.name()));
      options.dropout = 0.25;
      if (!has_slots_for(options.attention(0), 4)) continue;
      const auto whole = step_of(options).first;
      ThreadGroup group(4);
      std::vector<decltype(step_of(options))> parts(4);
      group.run([&](int64_t rank) {
        auto own = options;
        own.share = {{rank, 4}, group.name(rank)};
        parts[rank] = step_of(own);
      });
      for (const auto& [results, tables] : parts)
        for (const auto& [key, tensor] : whole)
          expect_near(results.at(key), own_rows(tensor, key, tables), 1e-11, key);
    }
}

TEST(OffsetParallel, AModelNamesTheRowsOfItsTables) {
  for (auto options : {tiny_vit(), tiny_gpt()}) {
    Network whole(options, seeded_generator(kSeed));
    EXPECT_TRUE(whole.table_rows().empty());
    const auto all = whole.module().named_parameters();
    std::map<std::string, int64_t> seen;
    for (int64_t rank = 0; rank < 3; ++rank) {
      options.share = {{rank, 3}, "unused"};
      Network part(options, seeded_generator(kSeed));
      const auto tables = part.table_rows();
      EXPECT_EQ(tables.size(), 3 * options.architecture.depth);
      int64_t numbers = 0;
      for (const auto& parameter : part.module().parameters()) numbers += parameter.numel();
      EXPECT_EQ(model_cost(options, 1).parameters, numbers);
      for (const auto& item : part.module().named_parameters()) {
        EXPECT_TRUE(same_bits(item.value(), own_rows(all[item.key()], item.key(), tables)));
        if (tables.count(item.key())) seen[item.key()] += item.value().size(0);
      }
    }
    for (const auto& [name, rows] : seen) EXPECT_EQ(rows, all[name].size(0)) << name;
  }
}

TEST(OffsetParallel, ALayerTakesItsRowsOfWholeTables) {
  const auto options = layer_of({}, {3, 2}, /*cls=*/true);
  Attention whole(options, seeded_generator(kSeed));
  NamedTensors tensors;
  for (const auto& item : whole->named_parameters()) tensors[item.key()] = item.value().detach();
  auto split = options;
  Attention part(split.share({{1, 3}}), seeded_generator(kSeed + 1));
  load_tensors(*part, tensors, {3, 2});
  for (const auto& item : part->named_parameters())
    EXPECT_TRUE(
        same_bits(item.value(), own_rows(tensors[item.key()], item.key(), part->table_rows())));
}

}  // namespace
}  // namespace translution
