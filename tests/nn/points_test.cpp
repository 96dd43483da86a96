// Attention between points: on a grid it is the grid's layer; padded, packed and single clouds
// agree. Its gradients and its kernels are compared in python/tests/test_points.py.

#include "translution/nn/points.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

namespace translution {
namespace {

constexpr Method kOnPoints[] = {Method::self_attention_no_pos, Method::self_attention,
                                Method::relative_key,          Method::relative_value,
                                Method::relative_bias,         Method::alpha_translution,
                                Method::translution,           Method::convolution};

AttentionOptions layer_options(Method method, bool cls) {
  Position position;
  position.method = method;
  position.kernel_size = 5;
  return AttentionOptions(12).heads(3).cls(cls).position(position);
}

PointOptions lattice(double spacing, int64_t axes = 2, int64_t radius = 2) {
  PointOptions points;
  points.axes = axes, points.radius = radius, points.spacing = {spacing};
  return points;
}

// The positions of a 3x3 grid; that of a class token is never read.
torch::Tensor grid_positions(double spacing, bool cls) {
  const auto side = torch::arange(3, torch::kDouble);
  auto at = spacing * torch::cartesian_prod({side, side});
  return cls ? torch::cat({torch::full({1, 2}, std::nan("")), at}) : at;
}

void copy_parameters(const torch::nn::Module& from, torch::nn::Module& to) {
  torch::NoGradGuard no_grad;
  auto into = to.named_parameters();
  for (const auto& parameter : from.named_parameters())
    into[parameter.key()].copy_(parameter.value());
}

TEST(PointAttention, IsTheGridLayerOnAGrid) {
  for (const Method method : kOnPoints)
    for (const bool cls : {false, true}) {
      SCOPED_TRACE(testing::Message() << name_of(kMethods, method) << (cls ? ", cls" : ""));
      torch::manual_seed(1);
      Attention grid(layer_options(method, cls).grid({3, 3}));
      PointAttention points(layer_options(method, cls), lattice(0.5));
      grid->to(torch::kDouble), points->to(torch::kDouble);
      copy_parameters(*grid, *points);
      const auto at = grid_positions(0.5, cls).expand({2, -1, -1});
      const auto x = torch::randn({2, at.size(1), 12}, torch::kDouble).requires_grad_();
      const auto expected = grid->forward(x), found = points->forward(x, {at});
      EXPECT_LE((found - expected).abs().max().item<double>(), 1e-13);
      const auto d = torch::randn_like(expected);
      const auto dx = torch::autograd::grad({expected}, {x}, {d})[0];
      EXPECT_LE((torch::autograd::grad({found}, {x}, {d})[0] - dx).abs().max().item<double>(),
                1e-13);
    }
}

TEST(PointAttention, PaddedIsPacked) {
  torch::manual_seed(1);
  auto near = lattice(0.4, 3);
  near.neighbours = 4, near.learn_spacing = true;
  PointAttention layer(layer_options(Method::alpha_translution, false), near);
  auto x = torch::randn({2, 6, 12}), at = torch::randn({2, 6, 3});
  const auto mask = torch::arange(6) < torch::tensor({6, 3}).unsqueeze(1);
  at.masked_fill_(mask.logical_not().unsqueeze(2), NAN);
  Points padded{at, mask}, packed{at.index({mask})};
  packed.batch = mask.nonzero().select(1, 0);
  const auto out = layer->forward(x, padded);
  EXPECT_TRUE(torch::equal(out.index({mask}), layer->forward(x.index({mask}), packed)));
  EXPECT_TRUE(torch::equal(out[1].slice(0, 3), torch::zeros({3, 12})));
  const auto alone = layer->forward(x[1].slice(0, 0, 3), {at[1].slice(0, 0, 3)});
  EXPECT_TRUE(torch::allclose(out[1].slice(0, 0, 3), alone, 1e-5, 1e-6));
  out.square().sum().backward();
  EXPECT_GT(layer->named_parameters()["log_spacing"].grad().abs().item<double>(), 0);
}

TEST(PointAttention, TrainsTheWeightsOfItsPairs) {
  torch::manual_seed(1);
  PointAttention layer(layer_options(Method::translution, true), lattice(0.5, 1, 1));
  Points call{torch::tensor({0.0f, 0.0f, 0.5f}).unsqueeze(1)};
  call.query = torch::tensor({2, 1}), call.key = torch::tensor({1, 1});  // of points 1 and 2
  layer->forward(torch::randn({3, 12}), call).square().sum().backward();
  const auto used = layer->named_parameters()["value"].grad().abs().sum({1, 2}).gt(0);
  // Offsets -1, 0, 1, and three slots of the class token.
  EXPECT_TRUE(torch::equal(used, torch::tensor({false, true, true, false, false, false})));
}

TEST(PointAttention, MatricesOfATableStartCloseToEachOther) {
  for (const Init init : {Init::scaled, Init::authors}) {
    PointAttention layer(layer_options(Method::translution, true).init(init), lattice(0.5));
    const auto table = layer->named_parameters()["query"];
    const auto difference = (table - table[0]).slice(0, 1).square().mean() / table.square().mean();
    if (init == Init::scaled)
      EXPECT_LT(difference.item<double>(), 0.05);
    else
      EXPECT_GT(difference.item<double>(), 1);
  }
}

void expect_refused(const AttentionOptions& options, const PointOptions& points,
                    const std::string& message) {
  try {
    PointAttention layer(options, points);
    ADD_FAILURE() << "expected: " << message;
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(PointAttention, RefusesWhatNeedsAGrid) {
  const auto options = layer_options(Method::translution, false);
  expect_refused(options, lattice(0.0), "points: spacing must be positive, got 0; give it in the");
  expect_refused(options, lattice(std::nan("")), "points: spacing must be positive, got nan");
  expect_refused(options, lattice(1.0, 4), "axes must be 1, 2 or 3, got 4");
  expect_refused(options, lattice(1.0, 2, 0), "radius must be 1 or more");
  expect_refused(AttentionOptions(options).grid({3, 3}), lattice(1.0),
                 "belong to tokens on a grid");
  expect_refused(AttentionOptions(options).causal(true), lattice(1.0),
                 "belong to tokens on a grid");
  expect_refused(layer_options(Method::gated_position, false), lattice(1.0),
                 "method 'gated_position' does not work on points");
  expect_refused(layer_options(Method::rotary, false), lattice(1.0), "rotary position belong");
}

}  // namespace
}  // namespace translution
