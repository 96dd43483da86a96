// Image folders as the trainer uses them: opened with open_data, batches from the loader. The tests
// infer the augmentation of an image from its pixels, and mixing from pixels and targets.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/data/pictures.h"
#include "translution/core/error.h"
#include "translution/data/augment.h"
#include "translution/data/loader.h"
#include "translution/data/sources.h"

namespace translution {

using namespace detail;

namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;
using ::testing::UnorderedElementsAre;

constexpr int kRampRows = 60, kRampCols = 80, kView = 32, kFolders = 4, kOfEach = 15;
constexpr int64_t kBatch = 5, kEpochs = 30;

// Red and blue increase with the column, green with the row.
RgbImage ramps() {
  return make_image(kRampRows, kRampCols, [](int row, int col, int c) {
    return c == 0 ? 40 + 2 * col : c == 1 ? 30 + 3 * row : 60 + col;
  });
}

class FolderSource : public ::testing::Test {
 protected:
  FolderSource() {
    for (const std::string part : {"train/", "val/"})
      for (int c = 0; c < kFolders; ++c)
        for (int i = 0; i < kOfEach; ++i)
          folder_.write(join(part, "class", c, "/", i, ".png"), encode_png(ramps()));
    options_.data = "images:" + folder_.path();
    options_.image_size = kView;
  }

  DataSource open(Augment augment) const {
    auto options = options_;
    options.augment = augment;
    return open_data(options);
  }

  const TemporaryFolder folder_;
  DataOptions options_;
};

std::vector<LoadedBatch> batches_of(const DataSource& source) {
  Loader loader(source.train, {training_order(kBatch, /*seed=*/3), /*workers=*/2});
  std::vector<LoadedBatch> batches;
  for (int64_t b = 0; b < kEpochs * loader.batches_per_epoch(); ++b)
    batches.push_back(*loader.next());
  return batches;
}

// ------------------------------------------------------------- augmentation seen in the pixels

// Converts normalised values back to 0..255: [3,rows,cols].
torch::Tensor levels_of(const torch::Tensor& image) {
  const auto mean = torch::tensor({0.485, 0.456, 0.406}).view({3, 1, 1});
  const auto deviation = torch::tensor({0.229, 0.224, 0.225}).view({3, 1, 1});
  return (image * deviation + mean) * 255;
}

// A line through values; `error` is the largest deviation of a value from it.
struct Line {
  double first, slope, error;
};

// Ignores the border, where the crop's edge affects values.
Line line_through(const torch::Tensor& values) {
  constexpr int64_t kFrom = 3, kTo = kView - 4;
  const auto level = values.accessor<float, 1>();
  const double slope = (level[kTo] - level[kFrom]) / (kTo - kFrom);
  Line line{level[kFrom] - slope * kFrom, slope, 0};
  for (int64_t i = kFrom; i <= kTo; ++i)
    line.error = std::max(line.error, std::abs(line.first + slope * i - level[i]));
  return line;
}

// The visible region of the ramps, in their pixels. `plain` is false if colours or geometry
// changed.
struct Seen {
  bool plain, flipped;
  double top, left, rows, cols;

  double share() const { return rows * cols / (kRampRows * kRampCols); }
  double ratio() const { return cols / rows; }
};

Seen look(const torch::Tensor& image) {
  constexpr double kRounding = 1.5;
  const auto levels = levels_of(image).contiguous();
  const auto red = levels[0], green = levels[1], blue = levels[2];
  const Line across = line_through(red[kView / 2].contiguous());
  const Line down = line_through(green.select(1, kView / 2).contiguous());
  const auto inside = [](const torch::Tensor& t) {
    return t.slice(0, 3, kView - 3).slice(1, 3, kView - 3);
  };
  const auto largest = [&](const torch::Tensor& t) { return inside(t).abs().max().item<double>(); };
  Seen seen{};
  seen.plain = across.error < kRounding && down.error < kRounding &&
               largest(red - red[kView / 2]) < kRounding &&
               largest(green - green.slice(1, kView / 2, kView / 2 + 1)) < kRounding &&
               largest(blue - (60 + (red - 40) / 2)) < kRounding;
  seen.flipped = across.slope < 0;
  // The centre of output pixel i is at i + 1/2 pixel widths.
  const auto begin = [](const Line& line, double zero, double step) {
    const double slope = std::abs(line.slope);
    const double low = line.slope < 0 ? line.first + line.slope * (kView - 1) : line.first;
    return (low - slope / 2 - zero) / step + 0.5;
  };
  seen.left = begin(across, 40, 2), seen.cols = std::abs(across.slope) * kView / 2;
  seen.top = begin(down, 30, 3), seen.rows = std::abs(down.slope) * kView / 3;
  return seen;
}

bool is_centre(const Seen& seen) {
  const Box centre = centre_crop({kRampRows, kRampCols}, kView);
  return std::abs(seen.top - centre.top) < 1.5 && std::abs(seen.left - centre.left) < 1.5 &&
         std::abs(seen.rows - centre.rows) < 1.5 && std::abs(seen.cols - centre.cols) < 1.5;
}

// Whether ImageNet's mean colour fills a part, as after a translation, rotation or shear.
bool has_fill(const torch::Tensor& image) {
  const auto mean = torch::tensor({124, 116, 104}).view({3, 1, 1});
  const auto filled = ((levels_of(image) - mean).abs() < 0.5).all(0);
  return filled.sum().item<int64_t>() > kView;
}

// Whether the image was posterized: very few levels are left.
bool has_few_levels(const torch::Tensor& image) {
  std::set<int> levels;
  const auto all = levels_of(image).round().flatten().contiguous();
  for (int64_t i = 0; i < all.numel(); ++i)
    levels.insert(static_cast<int>(all.data_ptr<float>()[i]));
  return levels.size() <= 4;
}

// Checks that count / all is the expected share, within five standard deviations.
void expect_share(int64_t count, int64_t all, double expected, const char* what) {
  ASSERT_GT(all, 0) << what;
  const double n = static_cast<double>(all);
  EXPECT_NEAR(static_cast<double>(count) / n, expected,
              5 * std::sqrt(expected * (1 - expected) / n))
      << what;
}

void expect_random_crops(const std::vector<Seen>& seen) {
  int64_t flipped = 0, centred = 0;
  std::vector<double> shares, ratios;
  for (const Seen& one : seen) {
    flipped += one.flipped;
    centred += is_centre(one);
    shares.push_back(one.share());
    ratios.push_back(one.ratio());
  }
  const auto all = static_cast<int64_t>(seen.size());
  expect_share(flipped, all, 0.5, "flips");
  EXPECT_LT(centred, all / 20);
  EXPECT_THAT(shares, Each(AllOf(Ge(0.07), Le(1.05))));
  EXPECT_THAT(ratios, Each(AllOf(Ge(0.7), Le(1.42))));
  EXPECT_LT(*std::min_element(shares.begin(), shares.end()), 0.2);
  EXPECT_GT(*std::max_element(shares.begin(), shares.end()), 0.8);
}

// --------------------------------------------------------------------------------- the tests

TEST_F(FolderSource, AugmentNoneTrainsOnTheCentreCrop) {
  const auto source = open(Augment::none);
  for (const auto& [plan, batch] : batches_of(source)) {
    ASSERT_EQ(batch.target.scalar_type(), torch::kLong);
    for (int64_t b = 0; b < kBatch; ++b) {
      const Seen seen = look(batch.input[b]);
      ASSERT_TRUE(seen.plain && !seen.flipped && is_centre(seen));
    }
  }
}

TEST_F(FolderSource, AugmentLightTrainsOnRandomCropsAndFlipsOnly) {
  const auto source = open(Augment::light);
  std::vector<Seen> seen;
  for (const auto& [plan, batch] : batches_of(source)) {
    ASSERT_EQ(batch.target.scalar_type(), torch::kLong);
    for (int64_t b = 0; b < kBatch; ++b) {
      EXPECT_EQ(batch.target[b].item<int64_t>(), plan.samples[b] / kOfEach);
      seen.push_back(look(batch.input[b]));
      ASSERT_TRUE(seen.back().plain);
    }
  }
  expect_random_crops(seen);
}

// The middle image of an odd batch is mixed with itself, so it shows only its own augmentation.
TEST_F(FolderSource, TheDefaultAddsRandAugmentToCropsAndFlips) {
  const auto source = open_data(options_);
  int64_t filled = 0, posterized = 0;
  std::vector<Seen> plain;
  const auto batches = batches_of(source);
  for (const auto& loaded : batches) {
    const auto image = loaded.batch.input[kBatch / 2];
    const Seen seen = look(image);
    if (seen.plain) plain.push_back(seen);
    filled += has_fill(image);
    posterized += has_few_levels(image);
  }
  const auto all = static_cast<int64_t>(batches.size());
  // Each of two operations is applied with probability 1/2; sharpness does not change ramps.
  expect_share(static_cast<int64_t>(plain.size()), all, std::pow(0.5 + 0.5 / 15, 2),
               "images unchanged by RandAugment");
  // Five of fifteen operations move the image; a second operation may change the fill colour.
  EXPECT_GT(filled, all / 7);
  EXPECT_LT(filled, all * 2 / 5);
  EXPECT_GT(posterized, all / 50);
  EXPECT_LT(posterized, all / 6);
  expect_random_crops(plain);
}

// Whether the pixels [3,rows,cols] of `mixed` are those of `b` inside a rectangle and of `a`
// outside.
bool is_cut(const torch::Tensor& mixed, const torch::Tensor& a, const torch::Tensor& b,
            double own) {
  const auto from_a = mixed.eq(a).all(0), from_b = mixed.eq(b).all(0);
  if (!from_a.logical_or(from_b).all().item<bool>()) return false;
  const auto foreign = from_a.logical_not().nonzero();
  const double area = (1 - own) * kView * kView;
  EXPECT_GE(from_b.sum().item<double>(), area - 0.01);
  if (foreign.size(0) == 0) return true;
  const auto sides = std::get<0>(foreign.max(0)) - std::get<0>(foreign.min(0)) + 1;
  EXPECT_LE(sides.prod().item<double>(), area + 0.01);
  return true;
}

TEST_F(FolderSource, TheDefaultMixesBatchesByMixupOrCutmix) {
  const auto source = open_data(options_);
  int64_t cut = 0, all = 0;
  for (const auto& [plan, batch] : batches_of(source)) {
    ASSERT_EQ(batch.target.sizes(), (std::vector<int64_t>{kBatch, kFolders}));
    ASSERT_TRUE(batch.target.sum(1).allclose(torch::ones({kBatch})));
    const int64_t first = plan.samples.front(), last = plan.samples.back();
    if (first / kOfEach == last / kOfEach) continue;  // one class: the target has no shares
    const double own = batch.target[0][first / kOfEach].item<double>();
    EXPECT_NEAR(batch.target[0][last / kOfEach].item<double>(), 1 - own, 1e-6);
    const auto alone = [&, epoch = plan.epoch](int64_t sample) {
      return source.train->load({epoch, 0, {sample}}).input[0];
    };
    const auto a = alone(first), b = alone(last);
    ++all;
    if (is_cut(batch.input[0], a, b, own)) {
      ++cut;
      continue;
    }
    ASSERT_TRUE(batch.input[0].allclose(own * a + (1 - own) * b, 1e-4, 1e-4));
  }
  expect_share(cut, all, 0.5, "batches mixed by cutmix");
}

TEST_F(FolderSource, EvaluationIsNeverAugmented) {
  for (const auto& [augment, name, help] : kAugments) {
    const auto source = open(augment);
    ASSERT_EQ(source.evaluation.size(), 1u);
    const auto& set = *source.evaluation[0].dataset;
    for (const int64_t epoch : {0, 7}) {
      const auto batch = set.load({epoch, epoch, {0, 20, 50}});
      EXPECT_TRUE(batch.target.equal(torch::tensor({0, 1, 3}, torch::kLong))) << name;
      for (int64_t b = 0; b < 3; ++b) {
        const Seen seen = look(batch.input[b]);
        EXPECT_TRUE(seen.plain && !seen.flipped && is_centre(seen)) << name;
      }
    }
  }
}

// --------------------------------------------------------------------------------- the limits

// Samples per class, counted from the targets of batches.
std::vector<int64_t> counts_in(const Dataset& set) {
  std::vector<int64_t> counts(set.classes().size());
  for (int64_t s = 0; s < set.size(); ++s)
    ++counts.at(set.load({0, 0, {s}}).target.item<int64_t>());
  return counts;
}

// Classes of 2, 9, 4 and 20 images, each with a different grey level.
class UnevenFolder : public ::testing::Test {
 protected:
  UnevenFolder() {
    const int sizes[] = {2, 9, 4, 20};
    int number = 0;
    for (int c = 0; c < 4; ++c)
      for (int i = 0; i < sizes[c]; ++i) {
        const auto bytes = encode_png(flat_image(9, 9, static_cast<uint8_t>(7 * ++number)));
        for (const std::string part : {"train/", "val/"})
          folder_.write(join(part, "class", c, "/", i, ".png"), bytes);
      }
    options_.data = "images:" + folder_.path();
    options_.image_size = 8;
    options_.augment = Augment::none;
  }

  DataSource open(int64_t train_limit, int64_t eval_limit, uint64_t seed = 0,
                  int64_t hold_out = 0) const {
    auto options = options_;
    options.train_limit = train_limit, options.eval_limit = eval_limit, options.seed = seed;
    options.hold_out = hold_out;
    return open_data(options);
  }
  // The grey level of every sample.
  static std::set<float> colours_in(const Dataset& set) {
    std::set<float> colours;
    for (int64_t s = 0; s < set.size(); ++s)
      colours.insert(set.load({0, 0, {s}}).input[0][0][0][0].item<float>());
    return colours;
  }

 private:
  const TemporaryFolder folder_;
  DataOptions options_;
};

TEST_F(UnevenFolder, ALimitIsSpreadEvenlyOverTheClasses) {
  const auto source = open(8, 14);
  EXPECT_THAT(counts_in(*source.train), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(counts_in(*source.evaluation[0].dataset), ElementsAre(2, 4, 4, 4));
  EXPECT_THAT(counts_in(*open(30, 0).train), ElementsAre(2, 9, 4, 15));
}

TEST_F(UnevenFolder, ALimitThatDoesNotDivideEvenlyGivesSomeClassesOneMore) {
  auto counts = counts_in(*open(6, 0).train);
  EXPECT_THAT(counts, UnorderedElementsAre(1, 1, 2, 2));
  EXPECT_THAT(counts_in(*open(3, 0).train), UnorderedElementsAre(0, 1, 1, 1));
  EXPECT_THAT(counts_in(*open(1, 0).train), UnorderedElementsAre(0, 0, 0, 1));
}

TEST_F(UnevenFolder, ALimitOfAllOrMoreTakesAll) {
  for (const int64_t limit : {35, 36, 1000000})
    EXPECT_THAT(counts_in(*open(limit, limit).evaluation[0].dataset), ElementsAre(2, 9, 4, 20));
}

TEST_F(UnevenFolder, HeldOutImagesAreEvenOverTheClassesAndNotTrainedOn) {
  const auto source = open(0, 0, /*seed=*/3, /*hold_out=*/8);
  ASSERT_EQ(source.evaluation.size(), 2u);
  const auto& held_out = *source.evaluation[0].dataset;
  EXPECT_EQ(source.evaluation[0].name, "held_out");
  EXPECT_THAT(counts_in(held_out), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(counts_in(*source.train), ElementsAre(0, 7, 2, 18));
  for (const float colour : colours_in(held_out))
    EXPECT_EQ(colours_in(*source.train).count(colour), 0u);
}

TEST_F(UnevenFolder, TheSeedSelectsTheSamplesAndALargerLimitIncludesThem) {
  const auto colours = [this](int64_t limit, uint64_t seed) {
    return colours_in(*open(limit, 0, seed).train);
  };
  const auto some = colours(8, 5), more = colours(13, 5);
  EXPECT_EQ(some.size(), 8u);
  EXPECT_EQ(colours(8, 5), some);
  EXPECT_NE(colours(8, 6), some);
  EXPECT_TRUE(std::includes(more.begin(), more.end(), some.begin(), some.end()));
}

}  // namespace
}  // namespace translution
