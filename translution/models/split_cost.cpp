#include "translution/models/split_cost.h"

#include <algorithm>

#include "translution/core/error.h"
#include "translution/models/cost.h"

namespace translution {

using namespace detail;

namespace {

constexpr double kBytes = 4;  // float32, in which gradients and activations travel

int64_t parts_of(int64_t whole, int64_t parts) { return (whole + parts - 1) / parts; }

double ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

bool begins_with(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

// Bytes that leave a machine for each byte that groups of `group` ranks sum. `local` ranks of each
// group are on this machine: a tree adds theirs first; of a ring, one link leaves it.
double leaving(int64_t group, int64_t local, int64_t ranks_per_machine) {
  const int64_t first = is_power_of_two(group) ? local : 1;
  return 2 * ratio(ranks_per_machine, local) * (1 - ratio(first, group));
}

// The tables of a layer.
struct Tables {
  double query = 0, key = 0, value = 0;     // input channels; 0: the role has no table
  double score_width = 0, value_width = 0;  // output channels
};

Tables tables_of(const AttentionOptions& options) {
  Tables tables;
  for (const auto& spec : attention_parameters(options)) {
    if (!spec.per_slot || spec.shape.size() != 3) continue;
    const auto in = static_cast<double>(spec.shape[1]), out = static_cast<double>(spec.shape[2]);
    const bool query = begins_with(spec.name, "query"), key = begins_with(spec.name, "key");
    (query ? tables.query : key ? tables.key : tables.value) = in;
    (query || key ? tables.score_width : tables.value_width) = out;
  }
  return tables;
}

// Numbers of the features whose gradients are partial. Scores with one table read plain features on
// the other side. `one_input`: sides with a table read the input of the layer; keys and values that
// read what queries read add their gradients to those of the queries.
double feature_numbers(const Tables& t, double queries, double tokens, bool one_input) {
  const bool scores = t.score_width > 0;
  const double of_queries = scores ? queries * (t.query > 0 ? t.query : t.score_width) : 0;
  const double of_keys = scores ? tokens * (t.key > 0 ? t.key : t.score_width) : 0;
  const double of_values = tokens * t.value;
  const bool joins = one_input && t.query > 0 && queries == tokens;
  return of_queries + (joins && t.key > 0 ? 0 : of_keys) + (joins ? 0 : of_values);
}

}  // namespace

LayerSums layer_sums(const ModelOptions& o, int64_t layer) {
  if (o.family == Family::cloud) return {};
  const auto options = o.attention(layer);
  const auto t = tables_of(options);
  const Method method = options.position().method;
  const auto tokens = static_cast<double>(o.tokens());
  const auto [rows, pairs] = layer_pairs(o, layer);
  const auto heads = static_cast<double>(options.heads());
  const bool alpha = method == Method::alpha_translution;
  const bool scores = t.score_width > 0, values = t.value_width > 0;
  const bool shared_scores = !scores || (alpha && options.position().shared_qkv);
  LayerSums sums;
  if (scores) sums.scores = heads * pairs;
  sums.outputs = rows * t.value_width;
  if (values && method != Method::convolution)
    sums.weights = heads * (shared_scores ? pairs : rows);
  sums.features = feature_numbers(t, rows, tokens, !alpha);
  return sums;
}

double sum_bytes(int64_t ranks, double bytes) { return 2 * ratio(ranks - 1, ranks) * bytes; }

SplitCost split_cost(const ModelOptions& o, const StepSize& step, const Cluster& cluster,
                     const Split& split) {
  require(split.ranks() == cluster.ranks(), "split: expected ", cluster.ranks(), " ranks, got ",
          split.data, " x ", split.offset);
  const int64_t samples = parts_of(step.batch, split.data), k = cluster.ranks_per_machine;
  auto owned = o;
  if (split.offset > 1) owned.share = {{0, split.offset}, "group"};  // no rank has more slots
  const auto cost = model_cost(owned, parts_of(samples, step.parts));
  const double gradients = kBytes * static_cast<double>(cost.parameters);
  double activations = 0;
  for (int64_t layer = 0; layer < o.architecture.depth; ++layer)
    activations += kBytes * static_cast<double>(samples) * layer_sums(o, layer).all();
  const int64_t local = std::min(split.offset, k);

  SplitCost result;
  result.split = split;
  result.data_bytes = sum_bytes(split.data, gradients);
  result.offset_bytes = sum_bytes(split.offset, activations);
  result.product_seconds = cost.training_flops * static_cast<double>(samples * k) / cluster.flops;
  result.travel_seconds = (leaving(split.data, k / local, k) * gradients +
                           leaving(split.offset, local, k) * activations) /
                          cluster.bandwidth;
  result.memory_bytes = cost.training_bytes + sharing_bytes(cost, {1, split.ranks(), k});
  result.fits = static_cast<double>(k) * result.memory_bytes <= cluster.memory;
  return result;
}

std::vector<SplitCost> split_costs(const ModelOptions& o, const StepSize& step,
                                   const Cluster& cluster) {
  require(is_power_of_two(cluster.ranks_per_machine),
          "ranks-per-machine: expected a power of two, got ", cluster.ranks_per_machine);
  const int64_t ranks = cluster.ranks(), slots = std::max<int64_t>(1, table_sizes(o).slots);
  std::vector<SplitCost> costs;
  for (int64_t offset = 1; offset <= slots && ranks % offset == 0; offset *= 2)
    if (ranks / offset <= step.batch)
      costs.push_back(split_cost(o, step, cluster, {ranks / offset, offset}));
  require(!costs.empty(), "machines: expected at most ", step.batch, " samples times ", slots,
          " slots of ranks, got ", ranks);
  return costs;
}

const SplitCost* recommended(const std::vector<SplitCost>& costs) {
  const SplitCost* best = nullptr;
  for (const auto& cost : costs)
    if (cost.fits && (best == nullptr || cost.step_seconds() < best->step_seconds())) best = &cost;
  return best;
}

}  // namespace translution
