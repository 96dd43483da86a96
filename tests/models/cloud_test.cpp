// Models of points: what changes their result and what does not. Gradients are compared with finite
// differences in python/tests/test_cloud.py.

#include "translution/models/cloud.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/tiny_models.h"
#include "translution/nn/generator.h"

namespace translution {
namespace {

using Shape = std::vector<int64_t>;
constexpr Pooling kBoth[] = {Pooling::cls, Pooling::mean};

struct Clouds {
  torch::Tensor x;
  Points points;

  // Cloud c alone, without padding.
  Clouds only(int64_t c) const {
    const auto mask = points.mask[c];
    return {x[c].index({mask}).unsqueeze(0), {points.positions[c].index({mask}).unsqueeze(0)}};
  }
};

// Three clouds of 7, 4 and 1 points; what is at padding must not be read.
Clouds random_clouds(int64_t axes = 2, torch::Dtype dtype = torch::kDouble) {
  torch::manual_seed(kSeed + 1);
  Clouds clouds{torch::randn({3, 7, 2}).to(dtype), {torch::randn({3, 7, axes}).to(dtype)}};
  const auto mask = torch::arange(7) < torch::tensor({7, 4, 1}).unsqueeze(1);
  clouds.x.masked_fill_(mask.logical_not().unsqueeze(2), NAN);
  clouds.points.positions.masked_fill_(mask.logical_not().unsqueeze(2), NAN);
  clouds.points.mask = mask;
  return clouds;
}

// Every method on points with both poolings, in double; `change` completes the options.
template <typename Test>
void for_each_model(const Test& test, const std::function<void(ModelOptions&)>& change = {}) {
  for (const auto& [name, position] : every_position())
    for (const Pooling pooling : kBoth) {
      if (!works_on_points(position)) continue;
      SCOPED_TRACE(detail::join(name, " ", name_of(kPoolings, pooling)));
      auto options = tiny_cloud(position, pooling);
      if (change) change(options);
      test(build<Cloud>(options));
    }
}

bool same(const torch::Tensor& a, const torch::Tensor& b) { return agree(a, b); }

TEST(Cloud, GivesOneLogitPerClassOrANumber) {
  const auto clouds = random_clouds();
  for_each_model([&](Cloud model) {
    const auto logits = model(clouds.x, clouds.points);
    EXPECT_EQ(logits.sizes(), (Shape{3, 5}));
    EXPECT_TRUE(logits.isfinite().all().item<bool>());
  });
  auto options = tiny_cloud();
  options.classes = 0;
  EXPECT_EQ(build<Cloud>(options)(clouds.x, clouds.points).sizes(), (Shape{3}));
}

TEST(Cloud, ComputesEachCloudAsIfItWereAlone) {
  const auto clouds = random_clouds();
  for_each_model([&](Cloud model) {
    const auto together = model(clouds.x, clouds.points);
    for (int64_t c = 0; c < 3; ++c) {
      const auto alone = clouds.only(c);
      EXPECT_TRUE(same(together[c], model(alone.x, alone.points)[0])) << c;
    }
  });
}

TEST(Cloud, DoesNotDependOnTheOrderOfPoints) {
  const auto clouds = random_clouds();
  const auto order = torch::tensor({3, 0, 6, 1, 5, 2, 4});
  const auto mixed = [&](const torch::Tensor& x) { return x.index_select(1, order); };
  for_each_model([&](Cloud model) {
    const Points points{mixed(clouds.points.positions), mixed(clouds.points.mask)};
    EXPECT_TRUE(same(model(mixed(clouds.x), points), model(clouds.x, clouds.points)));
  });
}

TEST(Cloud, MovesWithoutChange) {
  const auto clouds = random_clouds();
  const Points moved{clouds.points.positions + 17.25, clouds.points.mask};
  for_each_model(
      [&](Cloud model) {
        EXPECT_TRUE(same(model(clouds.x, moved), model(clouds.x, clouds.points)));
      },
      [](ModelOptions& o) {
        o.neighbours = 3;
        o.coordinates = Coordinates::centred;
      });
  auto options = tiny_cloud();
  options.input_embedding = true;
  auto reads_coordinates = build<Cloud>(options);
  EXPECT_FALSE(
      same(reads_coordinates(clouds.x, moved), reads_coordinates(clouds.x, clouds.points)));
}

TEST(Cloud, OfDistancesTurnsWithoutChange) {
  const auto clouds = random_clouds(3);
  const auto basis = std::get<0>(torch::linalg_qr(torch::randn({3, 3}, torch::kDouble)));
  const Points turned{clouds.points.positions.matmul(basis), clouds.points.mask};
  const auto of_space = [](bool distances) {
    return [=](ModelOptions& o) {
      o.axes = 3, o.distances = distances, o.learn_spacing = true, o.input_embedding = false;
    };
  };
  for_each_model(
      [&](Cloud model) {
        EXPECT_TRUE(same(model(clouds.x, turned), model(clouds.x, clouds.points)));
      },
      of_space(true));
  auto options = tiny_cloud();
  of_space(false)(options);
  auto model = build<Cloud>(options);
  EXPECT_FALSE(same(model(clouds.x, turned), model(clouds.x, clouds.points)));
}

// The blocks of a ViT on a grid of 3x3 are those of points on that grid, with the same weights.
TEST(Cloud, IsAViTOnAGrid) {
  const auto side = torch::arange(3, torch::kDouble);
  const auto grid = torch::cat({torch::full({1, 2}, NAN), torch::cartesian_prod({side, side})});
  for (const auto& [name, position] : every_position()) {
    if (!works_on_points(position) || position.sharing != Sharing::none) continue;
    SCOPED_TRACE(name);
    auto on_grid = tiny_vit(position);
    on_grid.image_size = {12, 12};
    on_grid.position.kernel_size = 5;
    auto of_points = tiny_cloud(position);
    of_points.spacing = 1;
    auto vit = build<ViT>(on_grid);
    auto cloud = build<Cloud>(of_points);
    torch::NoGradGuard no_grad;
    auto weights = cloud->backbone->named_parameters();
    for (const auto& weight : vit->backbone->named_parameters())
      weights[weight.key()].copy_(weight.value());
    const auto x = torch::randn({10, 12}, torch::kDouble);
    const auto pairs = list_points(grid, cloud->spacing(), torch::tensor({0, 10}),
                                   point_rule(of_points.lattice(), /*cls=*/true));
    AttendOptions call;
    call.points = &pairs;
    EXPECT_TRUE(same(cloud->backbone(x, call), vit->backbone(x.unsqueeze(0))[0]));
  }
}

TEST(Cloud, DrawsDropoutFromTheGeneratorOfTheCall) {
  const auto clouds = random_clouds();
  for_each_model(
      [&](Cloud model) {
        const auto call = [&](uint64_t seed) {
          return model->forward(clouds.x, clouds.points, seeded_generator(seed));
        };
        EXPECT_TRUE(same_bits(call(5), call(5)));
        EXPECT_FALSE(same_bits(call(5), call(6)));
        model->eval();
        EXPECT_TRUE(same_bits(call(5), call(6)));
      },
      [](ModelOptions& o) { o.dropout = 0.3; });
}

TEST(Cloud, MapsOfAttentionAreSharesOfThePairs) {
  const auto clouds = random_clouds();
  for_each_model([&](Cloud model) {
    const auto maps = model->attention_maps(clouds.x, clouds.points);
    const int64_t tokens = maps.first[-1].item<int64_t>();
    EXPECT_EQ(tokens, model->options.has_cls() ? 15 : 12);
    ASSERT_EQ(maps.weights.size(), 2u);
    for (const auto& weights : maps.weights) {
      EXPECT_EQ(weights.sizes(), (Shape{maps.query.size(0), 2}));
      if (model->options.position.method == Method::convolution) continue;
      const auto sums = torch::zeros({tokens, 2}, torch::kDouble).index_add(0, maps.query, weights);
      EXPECT_TRUE(same(sums, torch::ones_like(sums)));
    }
  });
}

TEST(Cloud, DescendsForEveryMethod) {
  const auto clouds = random_clouds();
  const auto target = torch::tensor({0, 3, 4});
  for_each_model([&](Cloud model) {
    std::vector<double> losses;
    for (int step = 0; step < 10; ++step) {
      model->zero_grad();
      const auto loss = at::cross_entropy_loss(model(clouds.x, clouds.points), target);
      losses.push_back(loss.item<double>());
      loss.backward();
      torch::NoGradGuard no_grad;
      for (auto& parameter : model->parameters())
        if (parameter.grad().defined()) parameter.sub_(parameter.grad(), 0.1);
    }
    EXPECT_LT(losses.back(), losses.front());
  });
}

}  // namespace
}  // namespace translution
