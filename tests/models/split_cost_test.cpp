#include "translution/models/split_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/models/tiny_models.h"
#include "translution/models/cost.h"

namespace translution {
namespace {

Position position_of(Method method, const char* roles = "qkv") {
  Position position;
  position.method = method;
  position.roles = Roles::parse(roles);
  return position;
}

// The exchanges of World::tree_sum, one after the other: bytes that each rank sends, and those that
// leave each machine.
struct Sent {
  std::vector<double> of_rank;
  std::map<int64_t, double> of_machine;
};

Sent add_as_a_tree(const std::vector<int64_t>& machine_of, double bytes) {
  const auto ranks = static_cast<int64_t>(machine_of.size());
  Sent sent{std::vector<double>(machine_of.size()), {}};
  const auto send = [&](int64_t rank, int64_t partner, double amount) {
    sent.of_rank[rank] += amount;
    if (machine_of[rank] != machine_of[partner]) sent.of_machine[machine_of[rank]] += amount;
  };
  for (int64_t rank = 0; rank < ranks; ++rank) {
    double mine = bytes;
    for (int64_t bit = 1; bit < ranks; bit *= 2) send(rank, rank ^ bit, mine /= 2);
    for (int64_t bit = ranks / 2; bit >= 1; bit /= 2, mine *= 2) send(rank, rank ^ bit, mine);
  }
  return sent;
}

TEST(SumBytes, AreThoseOfTheTree) {
  for (const int64_t ranks : {1, 2, 4, 8, 64})
    for (const double sent : add_as_a_tree(std::vector<int64_t>(ranks), 640).of_rank)
      EXPECT_DOUBLE_EQ(sum_bytes(ranks, 640), sent);
}

// Ranks are numbered machine by machine, and group by group within them.
TEST(SplitCost, CountsWhatLeavesAMachine) {
  Cluster cluster;
  cluster.bandwidth = 1;
  for (const int64_t per_machine : {1, 2, 4, 8})
    for (int64_t offset = 1; offset <= 8; offset *= 2) {
      cluster.machines = 8 / per_machine, cluster.ranks_per_machine = per_machine;
      const Split split{8 / offset, offset};
      const auto cost = split_cost(tiny_vit(), {16, 1}, cluster, split);
      std::map<int64_t, double> leaving;
      const auto add = [&](int64_t first, int64_t step, int64_t size, double sent_by_each) {
        if (size == 1) return;
        std::vector<int64_t> machines;
        for (int64_t r = 0; r < size; ++r) machines.push_back((first + r * step) / per_machine);
        const double bytes = sent_by_each / sum_bytes(size, 1);
        for (const auto& [machine, sent] : add_as_a_tree(machines, bytes).of_machine)
          leaving[machine] += sent;
      };
      for (int64_t first = 0; first < offset; ++first)
        add(first, offset, split.data, cost.data_bytes);
      for (int64_t group = 0; group < split.data; ++group)
        add(group * offset, 1, offset, cost.offset_bytes);
      for (int64_t machine = 0; machine < cluster.machines; ++machine)
        EXPECT_NEAR(cost.travel_seconds, leaving[machine], 1e-6 * leaving[machine])
            << per_machine << " " << offset;
    }
}

TEST(SplitCost, OfARingCountsTheLinksBetweenMachines) {
  Cluster cluster;
  cluster.machines = 3, cluster.bandwidth = 1;
  const auto one = split_cost(tiny_vit(), {12, 1}, cluster, {3, 1});
  EXPECT_DOUBLE_EQ(one.travel_seconds, one.data_bytes);
  cluster.ranks_per_machine = 2;  // a ring of six ranks crosses each link once
  const auto two = split_cost(tiny_vit(), {12, 1}, cluster, {6, 1});
  EXPECT_DOUBLE_EQ(two.travel_seconds, two.data_bytes);
}

// 7 tokens, 12 channels, 2 heads of 8, 2 layers; the last one has one query row.
TEST(LayerSums, OfTranslution) {
  const auto first = layer_sums(tiny_vit(), 0), last = layer_sums(tiny_vit(), 1);
  EXPECT_EQ(first.scores, 2 * 7 * 7);
  EXPECT_EQ(first.outputs, 7 * 16);
  EXPECT_EQ(first.weights, 2 * 7);    // row sums: there are no shared scores
  EXPECT_EQ(first.features, 7 * 12);  // q, k and v read the same input
  EXPECT_EQ(last.scores, 2 * 1 * 7);
  EXPECT_EQ(last.outputs, 16);
  EXPECT_EQ(last.features, (7 + 7 + 1) * 12);  // the query row is a tensor of its own
  const auto values = layer_sums(tiny_gpt(position_of(Method::translution, "v")), 0);
  EXPECT_EQ(values.scores, 0);
  EXPECT_EQ(values.weights, 2 * 28);  // of causal pairs
  EXPECT_EQ(values.features, 7 * 12);
  const auto both = layer_sums(tiny_gpt(position_of(Method::translution, "kv")), 0);
  EXPECT_EQ(both.features, 2 * 7 * 12 + 7 * 16);  // keys and values join queries alone
  const auto keys = layer_sums(tiny_gpt(position_of(Method::translution, "k")), 0);
  EXPECT_EQ(keys.scores, 2 * 28);
  EXPECT_EQ(keys.outputs + keys.weights, 0);
  EXPECT_EQ(keys.features, 7 * 12 + 7 * 16);  // and the shared queries
}

TEST(LayerSums, OfAlphaTranslutionAndConvolution) {
  auto position = position_of(Method::alpha_translution);
  position.relative_dim = 3, position.relative_dim_out = 5;
  const auto alpha = layer_sums(tiny_gpt(position), 0);
  EXPECT_EQ(alpha.scores, 2 * 28);
  EXPECT_EQ(alpha.outputs, 7 * 10);
  EXPECT_EQ(alpha.weights, 2 * 28);
  EXPECT_EQ(alpha.features, 3 * 7 * 6);
  position.shared_qkv = false;
  EXPECT_EQ(layer_sums(tiny_gpt(position), 0).weights, 2 * 7);
  const auto convolution = layer_sums(tiny_gpt(position_of(Method::convolution)), 0);
  EXPECT_EQ(convolution.scores + convolution.weights, 0);
  EXPECT_EQ(convolution.outputs, 7 * 16);
  EXPECT_EQ(convolution.features, 7 * 12);
}

TEST(LayerSums, OfLayersWithoutTablesAreNothing) {
  for (const auto method : {Method::self_attention, Method::relative_key, Method::gated_position})
    EXPECT_EQ(layer_sums(tiny_vit(position_of(method)), 0).all(), 0);
  auto hybrid = tiny_vit();
  hybrid.hybrid_layers = 1;
  EXPECT_EQ(layer_sums(hybrid, 1).all(), 0);
  EXPECT_EQ(layer_sums(tiny_cloud(), 0).all(), 0);
}

TEST(TableSizes, CountTheParametersThatAModelHasPerSlot) {
  for (const auto& [name, position] : every_position()) {
    int64_t counted = 0;
    const ViT model(tiny_vit(position));
    for (const auto& parameter : model->named_parameters())
      if (parameter.value().dim() == 3) counted += parameter.value().numel();
    EXPECT_EQ(table_sizes(tiny_vit(position)).parameters, counted) << name;
  }
}

// 18 slots: 9 for each of two ranks, at most 5 for each of four.
TEST(SplitCost, AddsItsParts) {
  const auto model = tiny_vit();
  const auto cost = model_cost(model, 2);
  const double tables = static_cast<double>(table_sizes(model).parameters);
  const double rest = static_cast<double>(cost.parameters) - tables;
  Cluster cluster;
  cluster.machines = 8, cluster.flops = 1, cluster.bandwidth = 1;
  const auto two = split_cost(model, {8, 1}, cluster, {4, 2});
  EXPECT_DOUBLE_EQ(two.data_bytes, 1.5 * 4 * (rest + tables / 2));
  const double sums = layer_sums(model, 0).all() + layer_sums(model, 1).all();
  EXPECT_DOUBLE_EQ(two.offset_bytes, 1.0 * 4 * 2 * sums);
  // Per pair of both layers: three matrices of 12x16, and scores and sums of width 16.
  const double of_tables = (49 + 7) * (3 * 2.0 * 12 * 16 + 2 * 2.0 * 16);
  EXPECT_DOUBLE_EQ(two.product_seconds, 2 * 3 * (cost.forward_flops - of_tables / 2));
  EXPECT_DOUBLE_EQ(two.step_seconds(), two.product_seconds + two.data_bytes + two.offset_bytes);
  const auto four = split_cost(model, {8, 1}, cluster, {2, 4});
  EXPECT_DOUBLE_EQ(four.data_bytes, 1.0 * 4 * (rest + tables * 5 / 18));
  const auto data = split_cost(model, {16, 1}, cluster, {8, 1});
  EXPECT_DOUBLE_EQ(data.product_seconds, 2 * cost.training_flops);
  EXPECT_EQ(data.memory_bytes, cost.training_bytes + sharing_bytes(cost, {1, 8, 1}));
  auto owned = model;
  owned.share = {{0, 2}, "group"};
  const auto half = model_cost(owned, 2);
  EXPECT_EQ(two.memory_bytes, half.training_bytes + sharing_bytes(half, {1, 8, 1}));
}

TEST(SplitCosts, AreOfPowersOfTwoWithSamplesAndSlots) {
  Cluster cluster;
  cluster.machines = 64;
  std::vector<std::pair<int64_t, int64_t>> splits;
  for (const auto& cost : split_costs(tiny_vit(), {16, 1}, cluster))
    splits.emplace_back(cost.split.data, cost.split.offset);
  using testing::Pair;
  EXPECT_THAT(splits, testing::ElementsAre(Pair(16, 4), Pair(8, 8), Pair(4, 16)));
}

TEST(Recommended, IsTheFastestThatFits) {
  std::vector<SplitCost> costs(3);
  costs[0].product_seconds = 1, costs[1].product_seconds = 3, costs[2].product_seconds = 2;
  EXPECT_EQ(recommended(costs), nullptr);
  costs[1].fits = costs[2].fits = true;
  EXPECT_EQ(recommended(costs), &costs[2]);
}

}  // namespace
}  // namespace translution
