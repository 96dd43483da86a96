#include "translution/data/image_points.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/clouds.h"
#include "tests/data/idx_files.h"
#include "translution/data/sources.h"

namespace translution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

struct Lit {
  int64_t row, col;
  uint8_t value;
};

// An image of 28x28 with a few pixels that are not black, repeated.
LabelledImages images_with(const std::vector<Lit>& pixels, int64_t count = 8) {
  auto image = torch::zeros({28, 28}, torch::kUInt8);
  for (const auto& pixel : pixels) image[pixel.row][pixel.col] = pixel.value;
  return {image.expand({count, 28, 28}).contiguous(), torch::arange(count)};
}

Batch load(const LabelledImages& images, const ImagePointsOptions& options, int64_t epoch = 0) {
  BatchPlan plan{epoch, 0, {}};
  for (int64_t s = 0; s < images.size(); ++s) plan.samples.push_back(s);
  return ImagePointsDataset(images, options).load(plan);
}

ImagePointsOptions placed(Placement placement) {
  ImagePointsOptions options;
  options.placement = placement;
  options.seed = 5;
  return options;
}

// The points of one sample [N,2].
torch::Tensor points_of(const Batch& batch, int64_t sample) {
  return batch.positions[sample].index({batch.mask[sample]});
}

TEST(ImagePoints, LieInTheirPixelsWithTheirBrightness) {
  const auto images = images_with({{5, 9, 200}});
  const auto batch = load(images, placed(Placement::still));
  EXPECT_TRUE(batch.target.equal(images.labels));
  for (int64_t s = 0; s < images.size(); ++s) {
    const auto points = points_of(batch, s);
    EXPECT_GE(points.size(0), 64);
    EXPECT_LE(points.size(0), 96);
    const auto row = points.select(1, 0), col = points.select(1, 1);
    EXPECT_GE(row.min().item<float>(), 28 + 5);  // the image lies in the middle of 84x84
    EXPECT_LE(row.max().item<float>(), 28 + 6);
    EXPECT_GE(col.min().item<float>(), 28 + 9);
    EXPECT_LE(col.max().item<float>(), 28 + 10);
    EXPECT_GT((row.max() - row.min()).item<float>(), 0.8) << "anywhere within the pixel";
    EXPECT_TRUE(batch.input[s].index({batch.mask[s]}).eq(200 / 255.0f).all().item<bool>());
  }
}

TEST(ImagePoints, AreDrawnByIntensity) {
  const auto batch = load(images_with({{0, 0, 60}, {9, 9, 180}}, 40), placed(Placement::still));
  const double points = batch.mask.sum().item<double>();
  const double bright = (batch.input > 0.5).sum().item<double>();
  EXPECT_NEAR(bright / points, 0.75, 0.03);
}

TEST(ImagePoints, OfABlackImageAreAnywhere) {
  const auto batch = load(images_with({}), placed(Placement::still));
  EXPECT_EQ(batch.input.abs().max().item<float>(), 0);
  const auto points = points_of(batch, 0);
  EXPECT_GT((std::get<0>(points.max(0)) - std::get<0>(points.min(0))).min().item<float>(), 20);
}

TEST(ImagePoints, ArePaddedWithZerosToTheLargestCloud) {
  const auto batch = load(images_with({{5, 9, 200}}), placed(Placement::moved));
  EXPECT_EQ(batch.mask.sum(1).max().item<int64_t>(), batch.mask.size(1));
  EXPECT_LT(batch.mask.sum(1).min().item<int64_t>(), batch.mask.size(1));
  EXPECT_EQ(batch.input.index({~batch.mask}).abs().sum().item<float>(), 0);
  EXPECT_EQ(batch.positions.index({~batch.mask}).abs().sum().item<float>(), 0);
  EXPECT_EQ(batch.positions.scalar_type(), torch::kFloat);
}

TEST(ImagePoints, MoveOverTheWholeCanvas) {
  const auto batch = load(images_with({{0, 0, 9}, {27, 27, 9}}, 200), placed(Placement::moved));
  const auto points = batch.positions.index({batch.mask});
  EXPECT_GE(points.min().item<float>(), 0);
  EXPECT_LE(points.max().item<float>(), 84);
  EXPECT_LT(points.min().item<float>(), 2);
  EXPECT_GT(points.max().item<float>(), 82);
}

// The vector from the points of the upper left pixel to those of the lower right one.
torch::Tensor diagonal(const Batch& batch, int64_t sample) {
  const auto points = points_of(batch, sample);
  const auto bright = batch.input[sample].index({batch.mask[sample]}).select(1, 0) > 0.5;
  return points.index({bright}).mean(0) - points.index({~bright}).mean(0);
}

TEST(ImagePoints, AreScaledAndRotatedAboutTheirMiddle) {
  const auto images = images_with({{4, 4, 100}, {23, 23, 200}}, 100);
  const double length = 19 * std::sqrt(2.0);
  const auto scaled = load(images, placed(Placement::scaled));
  const auto rotated = load(images, placed(Placement::rotated));
  double least = 9, most = 0, turn = 0;
  for (int64_t s = 0; s < images.size(); ++s) {
    const double scale = diagonal(scaled, s).norm().item<double>() / length;
    least = std::min(least, scale), most = std::max(most, scale);
    const auto along = diagonal(rotated, s);
    EXPECT_NEAR(along.norm().item<double>(), length, 0.8);
    const double angle =
        std::atan2(along[1].item<double>(), along[0].item<double>()) - std::atan(1.0);
    turn = std::max(turn, std::abs(angle));
  }
  EXPECT_NEAR(least, 0.7, 0.05);
  EXPECT_NEAR(most, 1.4, 0.05);
  EXPECT_NEAR(turn, std::atan(1.0), 0.1);
}

TEST(ImagePoints, AmongClutterAreThoseThatMoved) {
  const auto images = images_with({{5, 9, 200}});
  const auto moved = load(images, placed(Placement::moved));
  const auto among = load(images, placed(Placement::cluttered));
  for (int64_t s = 0; s < images.size(); ++s) {
    const auto own = points_of(moved, s), all = points_of(among, s);
    EXPECT_TRUE(all.narrow(0, 0, own.size(0)).equal(own));
    const int64_t more = all.size(0) - own.size(0);
    EXPECT_GE(more, 16);
    EXPECT_LE(more, 32);
  }
}

TEST(ImagePoints, AreAFunctionOfSeedEpochAndSample) {
  const auto images = images_with({{5, 9, 200}, {20, 3, 90}});
  auto options = placed(Placement::moved);
  testing::expect_same_batch(load(images, options, 0), load(images, options, 7));
  options.redraw = true;
  const auto first = load(images, options, 0), second = load(images, options, 1);
  EXPECT_FALSE(points_of(first, 0).equal(points_of(second, 0)));
  const auto corner = [](const Batch& batch) {
    return std::get<0>(points_of(batch, 0).min(0)).floor();
  };
  EXPECT_LT((corner(first) - corner(second)).abs().max().item<float>(), 2) << "the same placement";
  options.fresh = true;
  EXPECT_GT((corner(load(images, options, 0)) - corner(load(images, options, 1)))
                .abs()
                .max()
                .item<float>(),
            2);
  options.seed = 6;
  EXPECT_FALSE(points_of(load(images, options, 0), 0).equal(points_of(first, 0)));
}

DataOptions options_for(const std::string& data) {
  DataOptions options;
  options.data = data;
  return options;
}

TEST(OpenPointsOfImages, NamesItsEvaluationSets) {
  auto options = options_for("digits-points:40");
  options.train_on = Placement::moved;
  options.fresh = true;
  options.eval_on = {Placement::still, Placement::moved, Placement::scaled, Placement::rotated,
                     Placement::cluttered};
  const auto source = open_data(options);
  EXPECT_EQ(source.axes, 2);
  EXPECT_EQ(source.channels, 1);
  EXPECT_EQ(source.vocabulary, 0);
  EXPECT_EQ(source.target_scale, 0);
  EXPECT_TRUE(source.image.empty());
  EXPECT_EQ(source.classes.size(), 10u);
  EXPECT_EQ(source.train->size(), 40);
  std::vector<std::string> names;
  for (const auto& set : source.evaluation) names.push_back(set.name);
  EXPECT_THAT(names, ElementsAre("static", "dynamic", "scaled", "rotated", "clutter"));
  testing::expect_same_for_any_workers(source.train, 16);
}

TEST(OpenPointsOfImages, HasTheImagesOfMnistsFiles) {
  const testing::Directory directory;
  testing::write_split(directory);
  auto options = options_for("mnist-points:" + directory.path);
  options.hold_out = 10;
  const auto source = open_data(options);
  EXPECT_EQ(source.train->size(), 20);
  ASSERT_EQ(source.evaluation.size(), 3u);
  EXPECT_EQ(source.evaluation[0].name, "held_out");
  EXPECT_EQ(source.evaluation[0].dataset->labels().size(), 10u);
}

TEST(OpenPointsOfImages, RefusesWhatOnlyPointsHaveForImages) {
  auto options = options_for("digits:20");
  options.train_on = Placement::cluttered;
  const auto refusal = [&] {
    return message_of<std::invalid_argument>([&] { open_data(options); });
  };
  EXPECT_EQ(refusal(),
            "train-on: expected static or dynamic for images, got clutter; points have "
            "it (--data digits-points or mnist-points:DIR)");
  options.train_on = Placement::still;
  options.eval_on = {Placement::still, Placement::scaled};
  EXPECT_THAT(refusal(), HasSubstr("eval-on: expected static or dynamic for images, got scaled"));
  options = options_for("digits-points:0");
  EXPECT_EQ(refusal(), "data digits-points:N: expected 1 to 1000000 digits, got '0'");
  options = options_for("digits-points:20");
  options.canvas = {20, 84};
  EXPECT_EQ(refusal(), "canvas: 20x84 is too small for images of 28x28");
}

}  // namespace
}  // namespace translution
