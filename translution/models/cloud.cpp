#include "translution/models/cloud.h"

#include "translution/nn/dropout.h"
#include "translution/nn/linear.h"
#include "translution/ops/fixed_sum.h"
#include "translution/ops/gelu.h"

namespace translution {

/// The input of the first block, packed: all clouds, one after another.
struct CloudImpl::Tokens {
  torch::Tensor x;      // [R,dim]
  torch::Tensor first;  // int64 [B+1]
  PointPairs pairs;
};

namespace {

void check_input(const torch::Tensor& x, const Points& points, const ModelOptions& o,
                 const torch::Tensor& like) {
  TORCH_CHECK(x.defined(), "Cloud: the features are missing");
  TORCH_CHECK(points.positions.defined(), "Cloud: the positions are missing");
  TORCH_CHECK(x.dim() == 3 && x.size(2) == o.channels, "Cloud: expected features [B, N, ",
              o.channels, "], got ", x.sizes());
  TORCH_CHECK(!points.batch.defined() && !points.query.defined(),
              "Cloud: expected padded clouds and no pairs; packed points and pairs are for the "
              "layer, PointAttention");
  TORCH_CHECK(x.scalar_type() == like.scalar_type() && x.device() == like.device(),
              "Cloud: the features are ", x.scalar_type(), " on ", x.device(), ", the model is ",
              like.scalar_type(), " on ", like.device(), "; convert or move one of them");
}

// After pack_points, which leaves clouds without points out.
void check_clouds(const torch::Tensor& x, const Points& points, const torch::Tensor& first) {
  if (first.size(0) == x.size(0) + 1 && x.size(1) > 0) return;
  const auto empty = points.mask.defined() ? points.mask.any(1).logical_not()
                                           : torch::ones({x.size(0)}, torch::kBool);
  TORCH_CHECK(x.size(0) == 0, "Cloud: cloud ", empty.to(torch::kByte).argmax().item<int64_t>(),
              " has no points; leave it out");
}

// The mean [B,C] of the points of each cloud, x [B,N,C]; `sizes` [B] counts them. Without a mask,
// padding must be zero.
torch::Tensor mean_of_points(const torch::Tensor& x, const torch::Tensor& mask,
                             const torch::Tensor& sizes) {
  const auto points = mask.defined() ? x.masked_fill(mask.logical_not().unsqueeze(2), 0) : x;
  return sum_first(points.transpose(0, 1)) / sizes.unsqueeze(1).to(x.options());
}

// Rows of points [R,…], with a row of `leading` [B,…] before those of each cloud.
torch::Tensor put_before(const torch::Tensor& leading, const torch::Tensor& rows,
                         const torch::Tensor& first) {
  const int64_t clouds = leading.size(0), points = rows.size(0);
  const auto row = torch::arange(points, first.options());
  const auto cloud = torch::searchsorted(first, row, /*out_int32=*/false, /*right=*/true);
  const auto before = first.slice(0, 0, clouds) + torch::arange(clouds, first.options());
  return torch::zeros({clouds + points, rows.size(1)}, rows.options())
      .index_copy(0, row + cloud, rows)
      .index_copy(0, before, leading);
}

}  // namespace

CloudImpl::CloudImpl(const ModelOptions& o, const at::Generator& generator, const BlockBuilt& built)
    : options(o) {
  o.check();
  TORCH_CHECK(o.family == Family::cloud, "Cloud: expected the options of a cloud, got those of a ",
              name_of(kFamilies, o.family), "; name a cloud model, such as cloud-a");
  TORCH_CHECK(o.spacing, "Cloud: the spacing is missing; give it in the unit of the positions");
  const int64_t dim = o.architecture.dim;
  if (o.has_cls())
    cls_token =
        register_parameter("cls_token", start_vectors({dim}, o.init, torch::kFloat, generator));
  if (o.learn_spacing) log_spacing = register_parameter("log_spacing", start_spacing(o.lattice()));
  point_embed = register_module("point_embed", make_linear(o.channels, dim, o.init, generator));
  if (o.embeds_input()) {
    position_up = register_module("position_up", make_linear(o.axes, dim, o.init, generator));
    position_down = register_module("position_down", make_linear(dim, dim, o.init, generator));
  }
  dropout = register_module("dropout", torch::nn::Dropout(o.dropout));
  backbone = register_module("backbone", Backbone(o, generator, built));
  head =
      register_module("head", make_linear(dim, std::max<int64_t>(1, o.classes), o.init, generator));
}

torch::Tensor CloudImpl::spacing() const {
  return lattice_spacing(options.lattice(), log_spacing,
                         point_embed->bias.options().requires_grad(false));
}

// Coordinates in widths of the lattice, through an MLP.
torch::Tensor CloudImpl::embed_positions(const Points& points, const PackedPoints& rows) {
  auto at = rows.positions.to(torch::kDouble);
  if (options.coordinates == Coordinates::centred) {
    const auto sizes = rows.first.diff();
    const auto centres = mean_of_points(points.positions.to(torch::kDouble), points.mask, sizes);
    at = at - centres.repeat_interleave(sizes, 0);
  }
  at = at / (*options.spacing * static_cast<double>(options.position.radius));
  const auto hidden = multiply(position_up, at.to(point_embed->bias.options()), options.precision);
  return multiply(position_down, gelu(hidden, options.gelu == Gelu::tanh), options.precision);
}

CloudImpl::Tokens CloudImpl::embed(const torch::Tensor& x, const Points& points,
                                   const at::Generator& generator) {
  check_input(x, points, options, point_embed->bias);
  auto rows = pack_points(x, points.positions, points.mask, {}, options.channels, options.axes);
  check_clouds(x, points, rows.first);
  auto tokens = multiply(point_embed, rows.x, options.precision);  // [R,dim]
  if (position_up) tokens = tokens + embed_positions(points, rows);
  if (cls_token.defined()) {
    const int64_t clouds = x.size(0);
    const auto zeros = torch::zeros({clouds, 1, tokens.size(1)}, tokens.options());
    tokens = put_before(add_shared(zeros, cls_token.unsqueeze(0)).squeeze(1), tokens, rows.first);
    const auto nowhere = torch::zeros({clouds, options.axes}, rows.positions.options());
    rows.positions = put_before(nowhere, rows.positions, rows.first);
    rows.first = rows.first + torch::arange(clouds + 1, rows.first.options());
  }
  const auto pairs = list_points(rows.positions, spacing(), rows.first,
                                 point_rule(options.lattice(), options.has_cls()));
  return {drop(dropout, tokens, generator), rows.first, pairs};
}

torch::Tensor CloudImpl::forward(const torch::Tensor& x, const Points& points,
                                 const at::Generator& generator) {
  const auto tokens = embed(x, points, generator);
  AttendOptions call;
  call.generator = generator;
  call.points = &tokens.pairs;
  const auto rows = backbone(tokens.x, call);  // [R,dim]
  torch::Tensor pooled;                        // [B,dim]
  if (cls_token.defined()) {
    pooled = rows.index_select(0, tokens.first.slice(0, 0, x.size(0)));
  } else {
    const auto padded = unpack_points(rows, points.mask, x.size(0), x.size(1));
    pooled = mean_of_points(padded, {}, tokens.first.diff());
  }
  const auto out = multiply(head, pooled, options.precision);
  return options.predicts_number() ? out.squeeze(1) : out;
}

CloudAttention CloudImpl::attention_maps(const torch::Tensor& x, const Points& points) {
  const auto tokens = embed(x, points, {});
  AttendOptions call;
  call.points = &tokens.pairs;
  return {tokens.pairs.list.query, tokens.pairs.list.key, tokens.first,
          backbone->attention_maps(tokens.x, call)};
}

}  // namespace translution
