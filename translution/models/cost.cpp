#include "translution/models/cost.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "translution/core/shards.h"

namespace translution {

using namespace detail;

namespace {

constexpr double kBytes = 4, kHalf = 2;  // float32, bfloat16

// Bytes of a tensor of `count` float32 numbers: without padding (bare_bytes), or padded to whole
// pages as large tensors are (page_bytes, see ops/large.cpp).
using TensorBytes = double (*)(double count);

double bare_bytes(double count) { return kBytes * count; }

double page_bytes(double count) {
  constexpr double kLarge = 1 << 20, kPage = 2 << 20;
  const double bytes = kBytes * count;
  return bytes < kLarge ? bytes : kPage * std::ceil(bytes / kPage);
}

double product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
}

// Tokens, query rows and pairs of a layer. The last layer of a class-token ViT has one query row.
// Between points, `rows` are the most tokens that a table is multiplied with, counted for each of
// their slots, and `taps` the most rows that a pair reads for a role; on a grid they are 0. This
// process has one of `parts` of the slots, with about as many pairs as each other part.
struct LayerSize {
  double tokens, queries, pairs, rows = 0, taps = 0, parts = 1;
  double own_pairs() const { return pairs / parts; }
};

LayerSize full_size(const AttentionOptions& o) {
  const auto offsets = o.position().offsets(o.grid(), o.cls(), o.causal());
  const auto& relation = o.relation();
  const auto tokens =
      static_cast<double>(relation ? relation->num_tokens() : count_tokens(offsets));
  const int64_t pairs = relation ? relation->num_pairs() : count_pairs(offsets);
  LayerSize size{tokens, tokens, static_cast<double>(pairs)};
  size.parts = static_cast<double>(o.share().part.count);
  return size;
}

// At most: a cutoff or a window leaves fewer pairs, and pairs may read the same rows.
LayerSize cloud_size(const ModelOptions& o) {
  const double tokens = static_cast<double>(o.tokens()), points = static_cast<double>(o.points);
  const auto near = o.neighbours > 0 ? std::min(o.neighbours, o.points) : o.points;
  const double pairs = points * static_cast<double>(near) + (o.has_cls() ? 2 * points + 1 : 0);
  const auto lattice = o.lattice();
  const double axes = static_cast<double>(lattice.lattice_axes());
  const double taps = std::pow(2.0, axes);
  const double slots = std::pow(2.0 * static_cast<double>(lattice.radius) + 1, axes);
  return {tokens, tokens, pairs, std::min(tokens * slots, pairs * taps), taps};
}

LayerSize layer_size(const ModelOptions& o, int64_t layer) {
  if (o.family == Family::cloud) return cloud_size(o);
  auto size = full_size(o.attention(layer));
  if (o.has_cls() && layer + 1 == o.architecture.depth) size.queries = 1, size.pairs = size.tokens;
  return size;
}

// A table is multiplied once per pair, or once per row between points, which pairs then read; a
// matrix once per token; matrices of the query side only once per query row.
double parameter_flops(const ParameterSpec& spec, const LayerSize& size) {
  const bool is_read = size.taps > 0 && spec.per_slot;
  const double reads =
      is_read ? 2 * size.pairs * size.taps * static_cast<double>(spec.shape.back()) : 0;
  if (spec.shape.size() == 3) {
    const double products = size.taps > 0 ? size.rows : size.own_pairs();
    return 2 * products * product({spec.shape[1], spec.shape[2]}) + reads;
  }
  if (is_read) return reads;
  if (!spec.is_multiplied()) return 0;
  const bool of_queries = spec.name.rfind("query", 0) == 0 || spec.name == "value_up";
  return 2 * (of_queries ? size.queries : size.tokens) * product(spec.shape);
}

// Score and value sums: for content and for each relative part, 2 FLOPs per pair and channel.
double pair_flops(const AttentionOptions& o, const LayerSize& size) {
  const Position& p = o.position();
  const double width = static_cast<double>(o.heads() * o.dim_head());
  if (p.method == Method::convolution) return 0;
  const bool scores = p.roles.q || p.roles.k, values = p.roles.v;  // from tables
  double channels = 2 * width, own_channels = 0;
  if (p.method == Method::translution) {
    own_channels = (scores ? width : 0) + (values ? width : 0);
    channels -= own_channels;
  } else if (p.method == Method::alpha_translution) {
    const double small = static_cast<double>(p.relative_out() * o.heads());
    channels = p.shared_qkv ? 2 * width : 0;
    if (scores || !p.shared_qkv) (scores ? own_channels : channels) += small;
    if (values || !p.shared_qkv) (values ? own_channels : channels) += small;
  }
  if (p.method == Method::relative_key || p.method == Method::relative_value) channels += width;
  return 2 * (size.pairs * channels + size.own_pairs() * own_channels);
}

// The parameters, tables or matrices, the output projection, and the sums over pairs.
double attention_flops(const AttentionOptions& o, const LayerSize& size) {
  double flops =
      pair_flops(o, size) + 2 * size.queries * product({o.heads(), o.dim_head(), o.dim()});
  for (const auto& spec : attention_parameters(o)) flops += parameter_flops(spec, size);
  return flops;
}

double layer_flops(const ModelOptions& o, int64_t layer) {
  const auto size = layer_size(o, layer);
  const double mlp = 4 * size.queries * product({o.architecture.dim, o.architecture.mlp_dim});
  return attention_flops(o.table_options(layer), size) + mlp;
}

// Memory of a layer, in bytes for the whole batch.
struct LayerBytes {
  double activations;  // saved for backward: features between the parts of a block, and the map
  double work;  // more in backward: gradients of the activations, transposed features and maps
};

// Between points: features, encoded rows of each table, and scores and weights of the pairs.
LayerBytes cloud_layer_bytes(const ModelOptions& o, int64_t layer, int64_t batch,
                             TensorBytes tensor_bytes) {
  const auto size = layer_size(o, layer);
  const auto& a = o.architecture;
  const auto bytes = [&](double rows, double width) {
    return tensor_bytes(static_cast<double>(batch) * rows * width);
  };
  const double dim = static_cast<double>(a.dim), width = static_cast<double>(a.heads * a.dim_head);
  double activations = 5 * bytes(size.tokens, dim) + bytes(size.tokens, width) +
                       2 * bytes(size.tokens, static_cast<double>(a.mlp_dim)) +
                       3 * bytes(size.pairs, static_cast<double>(a.heads));
  for (const auto& spec : attention_parameters(o.table_options(layer)))
    if (spec.is_multiplied())
      activations +=
          bytes(spec.per_slot ? size.rows : size.tokens, static_cast<double>(spec.shape.back()));
  return {activations, activations};
}

// The list of pairs and their taps, which all layers share: numbers of 8 bytes, and phi.
double pair_list_bytes(const ModelOptions& o, int64_t batch) {
  if (o.family != Family::cloud) return 0;
  const auto size = cloud_size(o);
  constexpr double kIndex = 8;
  const double slots = static_cast<double>(count_slots(
      o.table_options(0).position().offsets(o.table_options(0).grid(), o.has_cls(), false)));
  return static_cast<double>(batch) * (size.pairs * (2 * kIndex + size.taps * (kIndex + kBytes)) +
                                       3 * kIndex * (size.tokens * slots + size.rows));
}

LayerBytes layer_bytes(const ModelOptions& o, int64_t layer, int64_t batch,
                       TensorBytes tensor_bytes) {
  if (o.family == Family::cloud) return cloud_layer_bytes(o, layer, batch, tensor_bytes);
  const auto size = layer_size(o, layer);
  const auto& a = o.architecture;
  const Position position = o.attention(layer).position();
  const auto features_bytes = [&](double rows, int64_t width) {
    return tensor_bytes(static_cast<double>(batch) * rows * static_cast<double>(width));
  };
  const int64_t width = a.heads * a.dim_head;
  const double map = features_bytes(size.queries * size.tokens, a.heads);
  double activations =
      2 * features_bytes(size.tokens, a.dim) + 3 * features_bytes(size.tokens, width) +
      3 * features_bytes(size.queries, a.dim) + features_bytes(size.queries, width) +
      2 * features_bytes(size.queries, a.mlp_dim) + map;
  double transposed = 0;
  if (position.method == Method::alpha_translution) {
    const int64_t small = a.heads * position.relative_dim;
    const double features =
        2 * features_bytes(size.tokens, small) + features_bytes(size.queries, small);
    const double sums = features_bytes(size.queries, a.heads * position.relative_out());
    activations += features + sums;
    transposed = 2 * features + sums + (position.shared_qkv ? 2 * map : 0);
  } else if (position.method == Method::translution) {
    if (o.qkv_bias && position.roles.any())  // the features with a constant channel
      activations += features_bytes(size.tokens, a.dim + 1);
    transposed = features_bytes(size.tokens, a.dim) + features_bytes(size.queries, width);
  }
  return {activations, activations + transposed};
}

// Encoded queries and keys of the whole batch, which a layer saves for backward if they fit into
// its workspace.
double saved_bytes(const ModelOptions& o, int64_t layer, int64_t batch, TensorBytes tensor_bytes) {
  if (o.family == Family::cloud) return 0;  // counted as activations
  const auto options = o.attention(layer);
  double width = 0;
  for (const auto& spec : attention_parameters(options)) {
    const bool of_scores = spec.name.rfind("query", 0) == 0 || spec.name.rfind("key", 0) == 0;
    if (of_scores && spec.shape.size() == 3 && spec.shape[1] >= kWideChannels)
      width = static_cast<double>(spec.shape[2]);
  }
  const double number = o.precision == Precision::bf16 ? kHalf / kBytes : 1;
  const double bytes = tensor_bytes(2 * number * static_cast<double>(batch) *
                                    layer_size(o, layer).own_pairs() * width);
  return bytes <= static_cast<double>(options.workspace()) ? bytes : 0;
}

// A matrix or table packed for bfloat16 products: [k,n] and its transpose in tiles of 32x16
// (kernels/bf16.h).
double packed_bytes(const ParameterSpec& spec) {
  const auto size = [](int64_t k, int64_t n) {
    return static_cast<double>((k + 31) / 32 * 32) * static_cast<double>((n + 15) / 16 * 16);
  };
  const int64_t k = spec.shape.end()[-2], n = spec.shape.end()[-1];
  const double matrices = product({spec.shape.begin(), spec.shape.end() - 2});
  return kHalf * matrices * (size(k, n) + size(n, k));
}

bool is_table_of_matrices(const ParameterSpec& spec) {
  return spec.per_slot && spec.shape.size() == 3;
}

// The accumulators of a layer with a matrix per offset. Queries and keys share them if they are
// computed from the same features.
double accumulator_bytes(const ModelOptions& o, int64_t layer, int64_t batch) {
  const auto options = o.attention(layer);
  const Position& position = options.position();
  if (position.method == Method::convolution || o.family == Family::cloud) return 0;
  SlotWork work{0, 0, 0, batch, 0};
  for (const auto& spec : attention_parameters(options)) {
    if (!is_table_of_matrices(spec)) continue;
    work.slots = spec.shape[0];
    work.width = std::max({work.width, spec.shape[1], spec.shape[2]});
  }
  if (work.slots == 0) return 0;
  const auto size = full_size(options);
  work.tokens = static_cast<int64_t>(size.tokens);
  work.pairs = static_cast<int64_t>(size.own_pairs());
  const bool shared =
      position.method == Method::translution && position.roles.q == position.roles.k;
  return (shared ? 1 : 2) *
         page_bytes(product({count_shards(work).sums, batch, work.tokens, work.width}));
}

void add_linear(std::vector<ParameterSpec>& specs, const std::string& name, int64_t in, int64_t out,
                bool bias = true) {
  specs.push_back({name + ".weight", {out, in}, in});
  if (bias) specs.push_back({name + ".bias", {out}});
}

void add_norm(std::vector<ParameterSpec>& specs, const std::string& name, int64_t dim) {
  specs.push_back({name + ".weight", {dim}});
  specs.push_back({name + ".bias", {dim}});
}

void add_backbone(std::vector<ParameterSpec>& specs, const ModelOptions& o) {
  const auto& a = o.architecture;
  for (int64_t layer = 0; layer < a.depth; ++layer) {
    const std::string block = join("backbone.blocks.", layer, ".");
    add_norm(specs, block + "norm1", a.dim);
    add_norm(specs, block + "norm2", a.dim);
    for (auto spec : attention_parameters(o.table_options(layer))) {
      spec.name = block + "attention." + spec.name;
      specs.push_back(spec);
    }
    add_linear(specs, block + "attention.out", a.heads * a.dim_head, a.dim);
    add_linear(specs, block + "mlp.up", a.dim, a.mlp_dim);
    add_linear(specs, block + "mlp.down", a.mlp_dim, a.dim);
  }
  add_norm(specs, "backbone.norm", a.dim);
}

}  // namespace

double attention_flops(const AttentionOptions& options) {
  return attention_flops(options, full_size(options));
}

LayerPairs layer_pairs(const ModelOptions& o, int64_t layer) {
  const auto size = layer_size(o, layer);
  return {size.queries, size.pairs};
}

TableSizes table_sizes(const ModelOptions& o) {
  o.check();
  TableSizes sizes;
  for (int64_t layer = 0; o.family != Family::cloud && layer < o.architecture.depth; ++layer)
    for (const auto& spec : attention_parameters(o.attention(layer)))
      if (is_table_of_matrices(spec)) {
        sizes.slots = spec.shape[0];
        sizes.parameters += spec.count();
      }
  return sizes;
}

std::vector<ParameterSpec> model_parameters(const ModelOptions& o) {
  o.check();
  const int64_t dim = o.architecture.dim;
  std::vector<ParameterSpec> specs;
  if (o.has_cls()) specs.push_back({"cls_token", {dim}});
  if (o.family == Family::cloud) {
    if (o.learn_spacing) specs.push_back({"log_spacing", {1}});
    add_linear(specs, "point_embed", o.channels, dim);
    if (o.embeds_input()) {
      add_linear(specs, "position_up", o.axes, dim);
      add_linear(specs, "position_down", dim, dim);
    }
    add_backbone(specs, o);
    add_linear(specs, "head", dim, std::max<int64_t>(1, o.classes));
    return specs;
  }
  if (o.embeds_input()) specs.push_back({"position_embedding", {o.tokens(), dim}});
  if (o.family == Family::vit) {
    const int64_t patch_dim = o.channels * o.patch_size * o.patch_size;
    if (o.extra_norms) add_norm(specs, "patch_norm", patch_dim);
    add_linear(specs, "patch_embed", patch_dim, dim);
    if (o.extra_norms) add_norm(specs, "embed_norm", dim);
    add_backbone(specs, o);
    add_linear(specs, "head", dim, o.classes);
  } else {
    specs.push_back({"token_embedding.weight", {o.vocabulary, dim}});
    add_backbone(specs, o);
    if (o.extra_norms) add_norm(specs, "head_norm", dim);
    add_linear(specs, "head", dim, o.vocabulary, /*bias=*/false);
  }
  return specs;
}

namespace {

// Activations before the first and behind the last layer, and the list of pairs that all share.
double end_bytes(const ModelOptions& o, int64_t batch) {
  const double dim = static_cast<double>(o.architecture.dim);
  const double tokens = static_cast<double>(o.tokens());
  double numbers = 0;
  if (o.family == Family::vit)
    numbers = 2 * static_cast<double>(o.channels) * product(o.image_size) + 3 * tokens * dim;
  else if (o.family == Family::cloud)
    numbers = static_cast<double>(o.points * (o.channels + o.axes)) + 5 * tokens * dim;
  else
    numbers = tokens * (4 * dim + 2 * static_cast<double>(o.vocabulary));
  return kBytes * static_cast<double>(batch) * numbers + pair_list_bytes(o, batch);
}

// Of all layers: the most that the parameters of one take in memory during a step in files.
double resident_layer_bytes(const ModelOptions& o, bool in_parts) {
  std::map<std::string, double> layers;
  double largest = 0;
  for (const auto& spec : model_parameters(o)) {
    const double bytes = page_bytes(product(spec.shape));
    const auto block = spec.name.rfind("backbone.blocks.", 0) == 0
                           ? spec.name.substr(0, spec.name.find('.', sizeof "backbone.blocks."))
                           : std::string(spec.name.rfind("head", 0) == 0 ? "head" : "embedding");
    // The weight, its gradient, and with parts the gradient of the next part.
    layers[block] += (in_parts ? 3 : 2) * bytes;
    if (o.precision == Precision::bf16 && spec.is_multiplied()) layers[block] += packed_bytes(spec);
    largest = std::max(largest, bytes);
  }
  double most = 0;
  for (const auto& [name, bytes] : layers) most = std::max(most, bytes);
  return most + 2 * largest;  // the moments of one parameter
}

}  // namespace

double offload_bytes(const ModelOptions& o, int64_t batch, int64_t part) {
  const double features = page_bytes(product({batch, o.tokens(), o.architecture.dim}));
  double step = 0, evaluation = 0;
  for (int64_t layer = 0; layer < o.architecture.depth; ++layer) {
    const auto bytes = layer_bytes(o, layer, part, page_bytes);
    step = std::max(step, bytes.activations + bytes.work + saved_bytes(o, layer, part, page_bytes) +
                              accumulator_bytes(o, layer, part));
    evaluation = std::max(evaluation, layer_bytes(o, layer, batch, page_bytes).activations);
  }
  step += end_bytes(o, part) + static_cast<double>(o.architecture.depth + 3) * features;
  evaluation += end_bytes(o, batch);
  return std::max(step, evaluation) + resident_layer_bytes(o, part < batch);
}

ModelCost model_cost(const ModelOptions& o, int64_t batch) {
  require(batch > 0, "model: expected a batch of 1 or more, got ", batch);
  ModelCost cost{};
  for (const auto& spec : model_parameters(o)) {
    const int64_t count = spec.count();
    require(cost.parameters <= std::numeric_limits<int64_t>::max() - count,
            "model: the number of parameters overflows 64 bits");
    cost.parameters += count;
  }
  const double dim = static_cast<double>(o.architecture.dim);
  const double tokens = static_cast<double>(o.tokens());
  const double ends = end_bytes(o, batch);
  if (o.family == Family::vit) {
    const double pixels = static_cast<double>(o.channels) * product(o.image_size);
    cost.forward_flops += 2 * pixels * dim + 2 * dim * static_cast<double>(o.classes);
  } else if (o.family == Family::cloud) {
    const double points = static_cast<double>(o.points);
    const double into = static_cast<double>(o.channels) +
                        (o.embeds_input() ? static_cast<double>(o.axes) + dim : 0);
    const double outputs = static_cast<double>(std::max<int64_t>(1, o.classes));
    cost.forward_flops += 2 * points * into * dim + 2 * dim * outputs;
  } else {
    cost.forward_flops += 2 * tokens * dim * static_cast<double>(o.vocabulary);
  }
  double bare = ends, pages = ends, widest = 0, work = 0;
  for (int64_t layer = 0; layer < o.architecture.depth; ++layer) {
    cost.forward_flops += layer_flops(o, layer);
    const auto bytes = layer_bytes(o, layer, batch, bare_bytes);
    const auto paged = layer_bytes(o, layer, batch, page_bytes);
    widest = std::max(widest, bytes.activations);
    work = std::max(work, paged.work);
    cost.kept_bytes += saved_bytes(o, layer, batch, bare_bytes);
    bare += bytes.activations + saved_bytes(o, layer, batch, bare_bytes);
    pages += paged.activations + saved_bytes(o, layer, batch, page_bytes);
    cost.accumulator_bytes = std::max(cost.accumulator_bytes, accumulator_bytes(o, layer, batch));
  }
  double bf16_savings = 0;  // in evaluation: matrices take 2 bytes instead of 4
  for (const auto& spec : model_parameters(o)) {
    bare += bare_bytes(product(spec.shape));  // gradients
    pages += page_bytes(product(spec.shape));
    if (o.precision != Precision::bf16 || !spec.is_multiplied()) continue;
    bf16_savings += (kBytes - kHalf) * product(spec.shape);
    cost.packed_bytes += packed_bytes(spec);
  }
  cost.training_flops = 3 * cost.forward_flops;
  cost.weight_bytes = kBytes * static_cast<double>(cost.parameters);
  cost.evaluation_bytes = cost.weight_bytes - bf16_savings + ends + widest;
  cost.work_bytes = work + pages - bare;
  cost.training_bytes =
      3 * cost.weight_bytes + cost.packed_bytes + bare + cost.work_bytes + cost.accumulator_bytes;
  return cost;
}

double sharing_bytes(const ModelCost& cost, const SharedTraining& shared) {
  constexpr double kBuffers = 2 * 16 * 1024 * 1024;
  const double levels = std::floor(std::log2(static_cast<double>(shared.shards)));
  return levels * cost.weight_bytes +
         (shared.processes > 1 ? std::min(kBuffers, 2 * cost.weight_bytes) : 0);
}

}  // namespace translution
