#include "translution/nn/points.h"

#include <torch/torch.h>

#include <cmath>
#include <utility>

#include "translution/core/error.h"
#include "translution/nn/dropout.h"
#include "translution/nn/linear.h"
#include "translution/ops/project.h"

namespace translution {
namespace {

using detail::require;

// The spacing that is learned stays within this factor of the one that is given.
constexpr double kMostChange = 4;
// How much the matrices of a table differ at the start, as a fraction of their size.
constexpr double kStartNoise = 0.1;

// A column of ones with as many rows as x has.
at::Tensor ones_beside(const at::Tensor& x) { return at::ones_like(x.slice(1, 0, 1)); }

// One call of attend_points: what its weights are multiplied with.
class PointCall {
 public:
  PointCall(const at::Tensor& x, const WeightOf& weight, const PointPairs& pairs, int64_t heads,
            Precision precision)
      : x_(x), weight_(weight), pairs_(pairs), heads_(heads), precision_(precision) {}

  at::Tensor scores(const EncodedRows& q, const EncodedRows& k) const {
    return pair_scores(q, k, pairs_.list, heads_);
  }
  // Softmax of the scores of all pairs [E,heads].
  at::Tensor weights(int64_t dim_head, Mixing mixing) const {
    return pair_softmax(all_scores(dim_head, mixing), pairs_.list.query, x_.sym_size(0), 1.0);
  }
  at::Tensor mix(const at::Tensor& weights, const EncodedRows& v) const {
    return pair_mix(weights, v, pairs_.list, x_.sym_size(0));
  }

  // The encoding of a role by its own matrices, shared or per slot.
  EncodedRows role(const std::string& name, const SlotRows& rows) const {
    const auto matrix = weight_(name.c_str());
    if (matrix.dim() == 3) return encoded(x_, matrix, rows);
    const auto bias = weight_((name + "_bias").c_str());
    return {projected(x_, matrix, bias)};
  }
  // The same in alpha's small space.
  EncodedRows small(const std::string& name, const SlotRows& rows) const {
    const auto down = projected(x_, weight_((name + "_down").c_str()));
    const auto table = weight_((name + "_offsets").c_str());
    return table.defined() ? encoded(down, table, rows) : EncodedRows{down};
  }
  // Vectors per slot, which all tokens share.
  EncodedRows vectors(const at::Tensor& table) const {
    return {table, at::arange(table.size(0), pairs_.list.query.options()).unsqueeze(0)};
  }
  EncodedRows encoded(const at::Tensor& x, const at::Tensor& table, const SlotRows& rows) const {
    const bool has_bias = table.sym_size(1) > x.sym_size(1);  // the last row of each matrix
    const auto features = has_bias ? at::cat({x, ones_beside(x)}, 1) : x;
    return {point_encode(features, table, rows, precision_), rows.places};
  }
  at::Tensor projected(const at::Tensor& x, const at::Tensor& matrix,
                       const at::Tensor& bias = {}) const {
    const auto biases = bias.defined() ? std::vector{bias} : std::vector<at::Tensor>();
    return project(x, {matrix}, biases, /*transposed=*/false, precision_)[0];
  }

 private:
  // Scaled and with their bias.
  at::Tensor all_scores(int64_t dim_head, Mixing mixing) const {
    at::Tensor score;
    const auto add = [&](const at::Tensor& part) { score = score.defined() ? score + part : part; };
    const bool own = weight_("query").defined(), has_small = weight_("query_down").defined();
    if (own) {
      const auto q = role("query", pairs_.query);
      const auto table = weight_("key_vectors");
      if (table.defined()) add(scores(q, vectors(table)));
      add(scores(q, role("key", pairs_.key)));
    }
    if (has_small) add(scores(small("query", pairs_.query), small("key", pairs_.key)));
    const double share = mixing == Mixing::mean && own && has_small ? 0.5 : 1.0;
    score = score * (share / std::sqrt(static_cast<double>(dim_head)));
    const auto bias = weight_("bias");
    if (!bias.defined()) return score;
    return score + scores({ones_beside(x_).expand({-1, heads_})}, vectors(bias));
  }

  const at::Tensor& x_;
  const WeightOf weight_;
  const PointPairs& pairs_;
  const int64_t heads_;
  const Precision precision_;
};

void check_options(const AttentionOptions& options, const PointOptions& points) {
  const auto& position = options.position();
  require(points.axes >= 1 && points.axes <= 3, "points: axes must be 1, 2 or 3, got ",
          points.axes);
  require(points.radius >= 1, "points: radius must be 1 or more lattice points to each side, got ",
          points.radius);
  const auto spacings = static_cast<int64_t>(points.spacing.size());
  require(!points.distances || spacings == 1, "points: distances have one spacing, got ", spacings);
  require(spacings == 1 || spacings == points.axes,
          "points: spacing must have 1 number or one for each of ", points.axes, " axes, got ",
          spacings);
  for (const double h : points.spacing)
    require(h > 0 && std::isfinite(h), "points: spacing must be positive, got ", h,
            "; give it in the unit of the positions");
  require(points.neighbours >= 0, "points: neighbours must be 0 or more, got ", points.neighbours);
  require(points.cutoff >= 0, "points: cutoff must be 0 or more, got ", points.cutoff);
  require(options.grid().empty() && !options.causal() && !options.relation() &&
              position.encoding == Encoding::relative && !position.rotates(),
          "points: grid, causal, relation, absolute encoding and rotary position belong to tokens "
          "on a grid; points have axes and spacing");
  require(position.method != Method::gated_position, "points: method '",
          name_of(kMethods, position.method), "' does not work on points");
}

PointOptions complete(PointOptions points, const AttentionOptions& options) {
  if (options.position().method == Method::convolution) points.beyond = Beyond::dropped;
  return points;
}

// Moves the matrices of a table close to the first one; their size stays.
void start_close(at::Tensor& table) {
  torch::NoGradGuard no_grad;
  const auto first = table.slice(0, 0, 1) * std::sqrt(1 - kStartNoise * kStartNoise);
  table.mul_(kStartNoise).add_(first);
}

}  // namespace

at::Tensor start_spacing(const PointOptions& points) {
  return torch::tensor(points.spacing, torch::kDouble).log().to(torch::kFloat);
}

at::Tensor lattice_spacing(const PointOptions& points, const at::Tensor& log_spacing,
                           const at::TensorOptions& like) {
  const auto given = torch::tensor(points.spacing, torch::kDouble);
  if (!log_spacing.defined()) return given.to(like);
  const double most = std::log(kMostChange);
  const auto start = given.log().to(like);
  return (start + ((log_spacing - start) / most).tanh() * most).exp();
}

PointRule point_rule(const PointOptions& points, bool cls) {
  return {points.radius, points.neighbours, points.cutoff, points.beyond == Beyond::dropped,
          cls,           points.distances};
}

at::Tensor attend_points(const at::Tensor& x, const WeightOf& weight, const PointPairs& pairs,
                         int64_t heads, int64_t dim_head, Mixing mixing, double dropout,
                         Precision precision, const at::Generator& generator) {
  const PointCall call(x, weight, pairs, heads, precision);
  if (const auto kernel = weight("kernel"); kernel.defined())
    return call.mix(ones_beside(pairs.list.phi), call.encoded(x, kernel, pairs.value));
  auto weights = call.weights(dim_head, mixing);
  if (dropout > 0) weights = drop(dropout, weights, generator);
  at::Tensor out;
  const auto add = [&](const at::Tensor& part) { out = out.defined() ? out + part : part; };
  const bool own = weight("value").defined();
  if (own) add(call.mix(weights, call.role("value", pairs.value)));
  if (const auto vectors = weight("value_vectors"); vectors.defined())
    add(call.mix(weights, call.vectors(vectors)));
  if (!weight("value_down").defined()) return out;
  add(call.projected(call.mix(weights, call.small("value", pairs.value)), weight("value_up")));
  return mixing == Mixing::mean && own ? out / 2 : out;
}

PointAttentionImpl::PointAttentionImpl(AttentionOptions options_, PointOptions points_,
                                       const at::Generator& generator)
    : points(complete(std::move(points_), options_)), options(std::move(options_)) {
  check_options(options, points);
  const auto on_grid = grid_options(options, points);
  for (auto& [name, parameter] : start_attention(on_grid, torch::kFloat, generator)) {
    auto table = parameter;
    if (options.init() == Init::scaled && table.dim() == 3 && name != "kernel") start_close(table);
    register_parameter(name, table);
  }
  const int64_t width = options.heads() * options.dim_head();
  out = register_module("out", make_linear(width, options.dim(), options.init(), generator));
  if (points.learn_spacing) log_spacing_ = register_parameter("log_spacing", start_spacing(points));
}

WeightOf PointAttentionImpl::weights() const {
  return [this](const char* name) {
    const auto* const found = parameters_.find(name);
    return found ? *found : at::Tensor();
  };
}

torch::Tensor PointAttentionImpl::spacing() const {
  return lattice_spacing(points, log_spacing_, out->bias.options().requires_grad(false));
}

PointPairs PointAttentionImpl::pairs(const torch::Tensor& positions, const torch::Tensor& first,
                                     const torch::Tensor& query, const torch::Tensor& key) const {
  return list_points(positions, spacing(), first, point_rule(points, options.cls()), query, key);
}

torch::Tensor PointAttentionImpl::attend(const torch::Tensor& x, const PointPairs& pairs,
                                         const at::Generator& generator) {
  const auto attended = attend_points(
      x, weights(), pairs, options.heads(), options.dim_head(), options.position().mixing,
      is_training() ? options.dropout() : 0.0, options.precision(), generator);
  return multiply(out, attended, options.precision());
}

torch::Tensor PointAttentionImpl::attention_map(const torch::Tensor& x,
                                                const PointPairs& pairs) const {
  if (weights()("kernel").defined())
    return torch::ones({pairs.list.query.size(0), options.heads()}, x.options());
  const PointCall call(x, weights(), pairs, options.heads(), options.precision());
  return call.weights(options.dim_head(), options.position().mixing);
}

torch::Tensor PointAttentionImpl::forward(const torch::Tensor& x, const Points& call) {
  const auto rows =
      pack_points(x, call.positions, call.mask, call.batch, options.dim(), points.axes);
  const auto list = pairs(rows.positions, rows.first, call.query, call.key);
  const auto result = attend(rows.x, list);
  return x.dim() == 2 ? result : unpack_points(result, call.mask, x.size(0), x.size(1));
}

}  // namespace translution
