#include "translution/data/sources.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/data/idx_files.h"

namespace translution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::SizeIs;

DataOptions options_for(const std::string& data) {
  DataOptions options;
  options.data = data;
  return options;
}

torch::Tensor first_input(const Dataset& set) { return set.load({0, 0, {0}}).input; }

std::string refusal(const DataOptions& options) {
  return message_of<std::invalid_argument>([&] { open_data(options); });
}

TEST(OpenData, DigitsHaveTwoEvaluationSetsWithoutTrainingDigits) {
  const auto source = open_data(options_for("digits:300"));
  EXPECT_EQ(source.train->size(), 300);
  ASSERT_THAT(source.evaluation, SizeIs(2));
  EXPECT_EQ(source.evaluation[0].name, "static");
  EXPECT_EQ(source.evaluation[1].name, "dynamic");
  for (const auto& set : source.evaluation) EXPECT_EQ(set.dataset->size(), 1000);
  EXPECT_THAT(source.classes, SizeIs(10));
  EXPECT_THAT(source.image, ElementsAre(84, 84));
  EXPECT_EQ(source.channels, 1);
  const auto train = first_input(*source.train);
  EXPECT_EQ(train.sizes(), (std::vector<int64_t>{1, 1, 84, 84}));
  EXPECT_FALSE(torch::equal(train, first_input(*source.evaluation[0].dataset)));
  EXPECT_FALSE(torch::equal(first_input(*source.evaluation[0].dataset),
                            first_input(*source.evaluation[1].dataset)));
}

TEST(OpenData, EvaluatesOnAFifthAsManyDigits) {
  EXPECT_EQ(open_data(options_for("digits:7000")).evaluation[0].dataset->size(), 1400);
}

TEST(OpenData, DigitsDependOnTheSeedAndALimitTakesTheFirst) {
  auto options = options_for("digits:50");
  const auto source = open_data(options);
  options.train_limit = 20;
  options.eval_limit = 30;
  const auto limited = open_data(options);
  EXPECT_EQ(limited.train->size(), 20);
  EXPECT_EQ(limited.evaluation[1].dataset->size(), 30);
  EXPECT_TRUE(torch::equal(first_input(*limited.train), first_input(*source.train)));
  options.seed = 1;
  EXPECT_FALSE(torch::equal(first_input(*open_data(options).train), first_input(*source.train)));
}

TEST(OpenData, TrainsAndEvaluatesOnTheGivenPlacements) {
  auto options = options_for("digits:20");
  options.train_on = Placement::fresh;
  options.eval_on = {Placement::moved};
  options.canvas = {40, 50};
  const auto source = open_data(options);
  EXPECT_EQ(source.evaluation.at(0).name, "dynamic");
  EXPECT_THAT(source.evaluation, SizeIs(1));
  EXPECT_THAT(source.image, ElementsAre(40, 50));
  EXPECT_FALSE(torch::equal(source.train->load({0, 0, {0, 1}}).input,
                            source.train->load({1, 0, {0, 1}}).input));
}

TEST(OpenData, WithoutALargerCanvasThereIsOneEvaluationSet) {
  auto options = options_for("digits:20");
  for (const auto& canvas : {std::vector<int64_t>{}, std::vector<int64_t>{28, 28}}) {
    options.canvas = canvas;
    const auto source = open_data(options);
    EXPECT_THAT(source.image, ElementsAre(28, 28));
    ASSERT_THAT(source.evaluation, SizeIs(1));
    EXPECT_EQ(source.evaluation[0].name, "static");
  }
}

TEST(OpenData, ReadsFilesAsMnistAndOtherSizesAsIdx) {
  const testing::Directory directory;
  testing::write_split(directory);
  for (const char* kind : {"mnist:", "idx:"}) {
    const auto source = open_data(options_for(kind + directory.path));
    EXPECT_EQ(source.train->size(), 30);
    EXPECT_EQ(source.evaluation.at(0).dataset->size(), 20);
  }
  testing::write_split(directory, 9, 13);
  auto options = options_for("idx:" + directory.path);
  options.canvas = {};
  EXPECT_THAT(open_data(options).image, ElementsAre(9, 13));
  options.data = "mnist:" + directory.path;
  EXPECT_THAT(message_of<std::runtime_error>([&] { open_data(options); }),
              HasSubstr("28x28, these are 9x13"));
  directory.write("t10k-images.idx3-ubyte.gz", testing::idx_bytes({20, 8, 13}, 20 * 8 * 13));
  options.data = "idx:" + directory.path;
  EXPECT_THAT(message_of<std::runtime_error>([&] { open_data(options); }),
              HasSubstr("training images are 9x13, test images 8x13"));
}

// The labels of all samples of a set, from the targets of a batch.
std::vector<int64_t> labels_in(const Dataset& set) {
  BatchPlan plan;
  for (int64_t s = 0; s < set.size(); ++s) plan.samples.push_back(s);
  const auto target = set.load(plan).target;
  return {target.data_ptr<int64_t>(), target.data_ptr<int64_t>() + target.numel()};
}

TEST(OpenData, ALimitIsSpreadOverTheClassesIfIdxDataIsSortedByClass) {
  const testing::Directory directory;
  testing::write_split(directory);
  auto options = options_for("idx:" + directory.path);
  options.train_limit = 6;
  options.eval_limit = 3;
  const auto mixed = open_data(options);
  EXPECT_THAT(labels_in(*mixed.train), ElementsAre(0, 1, 2, 3, 4, 5)) << "the first";
  EXPECT_THAT(labels_in(*mixed.evaluation[0].dataset), ElementsAre(0, 1, 2));
  // Sorted by class, but not in ascending order: 10 samples each of 7, 2 and 4.
  auto labels = testing::idx_bytes({30}, 30);
  for (size_t i = 0; i < 30; ++i) labels[labels.size() - 30 + i] = "\7\2\4"[i / 10];
  directory.write("train-labels.idx1-ubyte", labels);
  EXPECT_THAT(labels_in(*open_data(options).train), ElementsAre(7, 7, 2, 2, 4, 4));
}

TEST(OpenData, HoldsOutTheSameTrainingSamplesForEverySeed) {
  const testing::Directory directory;
  testing::write_split(directory);
  auto options = options_for("idx:" + directory.path);
  options.canvas = {};
  const auto all = open_data(options);
  options.hold_out = 7;
  const auto source = open_data(options);
  ASSERT_THAT(source.evaluation, SizeIs(2));
  EXPECT_EQ(source.evaluation[0].name, "held_out");
  EXPECT_EQ(source.evaluation[1].name, "static");
  const auto& held_out = *source.evaluation[0].dataset;
  EXPECT_EQ(held_out.size(), 7);
  EXPECT_EQ(source.train->size() + 7, all.train->size());
  // Together they are the whole training set: no image is lost, none is in both.
  std::multiset<std::string> parts, whole;
  const auto add_images = [](const Dataset& set, std::multiset<std::string>& images) {
    for (int64_t s = 0; s < set.size(); ++s) {
      BatchPlan plan;
      plan.samples = {s};
      const auto pixels = set.load(plan).input.contiguous();
      images.emplace(static_cast<const char*>(pixels.data_ptr()), pixels.nbytes());
    }
  };
  add_images(*source.train, parts);
  add_images(held_out, parts);
  add_images(*all.train, whole);
  EXPECT_TRUE(parts == whole);
  options.seed = 1;
  EXPECT_EQ(labels_in(*open_data(options).train), labels_in(*source.train));
}

TEST(OpenData, PlacesHeldOutDigitsAsInTraining) {
  auto options = options_for("digits:40");
  options.hold_out = 10;
  options.eval_on = {};
  options.train_on = Placement::moved;
  const auto moved = open_data(options);
  ASSERT_THAT(moved.evaluation, SizeIs(1)) << "eval-on none leaves the held-out samples";
  options.train_on = Placement::still;
  EXPECT_FALSE(torch::equal(first_input(*moved.evaluation[0].dataset),
                            first_input(*open_data(options).evaluation[0].dataset)));
  EXPECT_THAT(labels_in(*moved.evaluation[0].dataset),
              ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(OpenData, RefusesInvalidHoldOut) {
  auto options = options_for("digits:40");
  options.hold_out = 40;
  EXPECT_EQ(refusal(options), "hold-out: expected fewer than the 40 training samples, got 40");
  options.hold_out = -1;
  EXPECT_EQ(refusal(options), "hold-out: expected 0 or more, got -1");
  options.hold_out = 0;
  options.eval_on = {};
  EXPECT_THAT(refusal(options), HasSubstr("eval-on: expected static or dynamic"));
  options = options_for("text");
  options.length = 16;
  options.hold_out = 1;
  EXPECT_THAT(refusal(options), HasSubstr("hold-out: expected 0 for text"));
}

TEST(OpenData, TheBuiltInTextHasOneTokenPerByte) {
  auto options = options_for("text");
  options.length = 16;
  const auto source = open_data(options);
  EXPECT_EQ(source.vocabulary, 256);
  EXPECT_GT(source.train->size(), 8 * source.evaluation.front().dataset->size());
  BatchPlan plan;
  plan.samples = {3};
  const auto batch = source.train->load(plan);
  EXPECT_TRUE(batch.input.narrow(1, 1, 15).equal(batch.target.narrow(1, 0, 15)));
  EXPECT_THAT(refusal(options_for("text")), HasSubstr("expected a gpt model"));
  EXPECT_THAT(refusal(options_for("text:x")), HasSubstr("expected no directory, got 'x'"));
}

TEST(OpenData, ReportsInvalidOptions) {
  EXPECT_EQ(refusal(options_for("digit")), "unknown kind of data 'digit'; did you mean 'digits'?");
  EXPECT_EQ(refusal(options_for("minst:/data")),
            "unknown kind of data 'minst'; did you mean 'mnist'?");
  for (const char* count : {"0", "-1", "x", "12x", " 1", "1000001", "99999999999999999999"})
    EXPECT_THAT(refusal(options_for(std::string("digits:") + count)),
                HasSubstr(std::string("got '") + count + "'"));
  EXPECT_THAT(refusal(options_for("mnist")), HasSubstr("mnist:DIR"));
  EXPECT_THAT(refusal(options_for("idx:")), HasSubstr("idx:DIR"));
  EXPECT_THAT(message_of<std::runtime_error>([] { open_data(options_for("mnist:/nowhere")); }),
              HasSubstr("scripts/fetch-mnist /nowhere"));
  auto options = options_for("digits:1");
  options.eval_on = {Placement::fresh};
  EXPECT_THAT(refusal(options), HasSubstr("expected static or dynamic, got fresh"));
  options = options_for("digits:1");
  options.canvas = {84};
  EXPECT_THAT(refusal(options), HasSubstr("expected rows and columns"));
  options.canvas = {20, 84};
  EXPECT_THAT(refusal(options), HasSubstr("20x84 is too small for images of 28x28"));
  options = options_for("digits:1");
  options.train_limit = -1;
  EXPECT_THAT(refusal(options), HasSubstr("limits"));
}

}  // namespace
}  // namespace translution
