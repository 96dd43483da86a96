#include "apps/translution/reproduce/plan.h"

#include <gmock/gmock.h>

#include <set>

#include "apps/translution/reproduce/cuts.h"

namespace translution {

using namespace cli;

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const DataFacts kDigits{60000, 10000, 1, 10, {84, 84}, 0};

DataFacts facts_for(const std::string& table) {
  return paper_data(subject_of(paper_table(table).rows.front().model)).facts;
}

ReproducePlan plan_of(const std::string& table, Budget budget, std::vector<std::string> rows = {},
                      const DataFacts& facts = kDigits) {
  return make_plan({table, budget, std::move(rows)}, facts);
}

std::set<std::string> trainings_of(const ReproducePlan& plan) {
  std::set<std::string> names;
  for (const auto& training : plan.trainings) names.insert(training.name);
  return names;
}

std::string refusal(const PlanRequest& request, const DataFacts& facts = kDigits) {
  try {
    make_plan(request, facts);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Plan, EveryTableHasAllItsRowsAndFigures) {
  for (const auto& name : paper_table_names()) {
    const auto plan = plan_of(name, Budget::paper, {}, facts_for(name));
    ASSERT_EQ(plan.rows.size(), plan.table.rows.size()) << name;
    for (const auto& row : plan.rows) {
      ASSERT_EQ(row.figures.size(), row.paper.results.size()) << name;
      for (size_t f = 0; f < row.figures.size(); ++f) {
        EXPECT_EQ(row.figures[f].name, row.paper.results[f].first);
        EXPECT_EQ(row.figures[f].paper, row.paper.results[f].second);
        EXPECT_LT(row.figures[f].training, plan.trainings.size());
      }
    }
  }
}

TEST(Plan, TheFullRecipeOnThePapersDataHasNoCuts) {
  for (const auto& name : paper_table_names())
    for (const auto& row : plan_of(name, Budget::paper, {}, facts_for(name)).rows)
      EXPECT_THAT(row.cuts, IsEmpty()) << name << " row " << row.number;
}

TEST(Plan, OneStaticTrainingGivesTwoFigures) {
  const auto plan = plan_of("mnist", Budget::desk, {"2"});
  ASSERT_EQ(plan.trainings.size(), 2);
  const auto& figures = plan.rows.front().figures;
  EXPECT_EQ(figures[0].training, figures[2].training);  // static_static and static_dynamic
  EXPECT_NE(figures[0].training, figures[1].training);
  EXPECT_EQ(figures[0].set, "static");
  EXPECT_EQ(figures[2].set, "dynamic");
  const auto& still = plan.trainings[figures[0].training];
  EXPECT_EQ(still.data.train_on, Placement::still);
  EXPECT_EQ(still.data.eval_on.size(), 2);
  EXPECT_EQ(plan.trainings[figures[1].training].data.train_on, Placement::moved);
}

TEST(Plan, TrainingsOnMovedImagesComeFirst) {
  const auto plan = plan_of("mnist", Budget::desk, {"1-2"});
  ASSERT_EQ(plan.trainings.size(), 4);
  for (size_t t = 0; t < 4; ++t)
    EXPECT_EQ(plan.trainings[t].data.train_on, t < 2 ? Placement::moved : Placement::still);
}

TEST(Plan, TablesShareTrainingsByTheirNames) {
  const auto mnist = trainings_of(plan_of("mnist", Budget::desk, {"2"}));
  EXPECT_EQ(trainings_of(plan_of("relative_vs_absolute", Budget::desk, {"1"})), mnist);
  EXPECT_EQ(trainings_of(plan_of("input_position_embedding", Budget::desk, {"1"})), mnist);
  EXPECT_EQ(trainings_of(plan_of("position_encodings", Budget::desk, {"8"})),
            trainings_of(plan_of("relative_dim", Budget::desk, {"7"})));
  // Without relative channels, alpha-Translution has no positions.
  EXPECT_EQ(trainings_of(plan_of("position_encodings", Budget::desk, {"1"})),
            trainings_of(plan_of("relative_dim", Budget::desk, {"1"})));
}

TEST(Plan, FreshPlacementsAffectOnlyTrainingsOnMovedDigits) {
  PlanRequest request{"mnist", Budget::desk, {"2"}};
  const auto fixed = make_plan(request, kDigits);
  request.settings = {{"placement", "fresh"}};
  const auto fresh = make_plan(request, kDigits);
  const auto name = [](const ReproducePlan& plan, size_t figure) {
    return plan.trainings[plan.rows.front().figures[figure].training].name;
  };
  EXPECT_EQ(name(fresh, 0), name(fixed, 0)) << "static";
  EXPECT_NE(name(fresh, 1), name(fixed, 1)) << "dynamic";
  EXPECT_THAT(fresh.rows.front().cuts, Contains("new placement in every pass"));
}

TEST(Plan, NamesDependOnOptionsAndSeedsButNotOnLogging) {
  const auto names = [](const PlanRequest& request) {
    return trainings_of(make_plan(request, kDigits));
  };
  PlanRequest request{"mnist", Budget::desk, {"2"}};
  const auto usual = names(request);
  request.settings = {
      {"log-every", "7"}, {"save-every", "9"}, {"workers", "0"}, {"max-broken", "0.1"}};
  EXPECT_EQ(names(request), usual);
  request.settings = {{"epochs", "6"}};
  EXPECT_NE(names(request), usual);
  request.settings = {{"init", "authors"}};
  EXPECT_EQ(names(request), usual);
  request.settings = {{"init", "scaled"}};
  EXPECT_NE(names(request), usual);
  EXPECT_THAT(make_plan(request, kDigits).rows.front().cuts,
              Contains("init scaled instead of authors"));
  request.settings.clear();
  request.seeds = {1};
  EXPECT_NE(names(request), usual);
  request.seeds = {0, 1};
  EXPECT_EQ(names(request).size(), 4);
}

TEST(Plan, Bf16ChangesNamesAndFloat32DoesNot) {
  PlanRequest request{"mnist", Budget::desk, {"2"}};
  const std::set<std::string> before = {"vit-a-12-alpha_translution-static-seed0-6ba173",
                                        "vit-a-12-alpha_translution-dynamic-seed0-a0955c"};
  EXPECT_EQ(trainings_of(make_plan(request, kDigits)), before);
  request.settings = {{"precision", "float32"}};
  EXPECT_EQ(trainings_of(make_plan(request, kDigits)), before);
  request.settings = {{"precision", "bf16"}};
  const auto plan = make_plan(request, kDigits);
  for (const auto& name : trainings_of(plan)) EXPECT_EQ(before.count(name), 0) << name;
  EXPECT_THAT(plan.rows.front().cuts, Contains("precision bf16 instead of float32"));
  EXPECT_EQ(plan.rows.front().model.precision, Precision::bf16);
  EXPECT_EQ(plan.trainings.front().model.precision, Precision::bf16);
}

TEST(Plan, CutsOfTheDeskBudgetAreNamed) {
  EXPECT_THAT(
      plan_of("mnist", Budget::desk, {"1"}).rows.front().cuts,
      ElementsAre("5 of 20 passes", "batch 64 instead of 256", "warmup 250 instead of 200"));
  const auto image = plan_of("position_encodings", Budget::desk, {"8"}).rows.front();
  EXPECT_THAT(image.cuts, Contains("Fashion-MNIST with 60,000 images instead of ImageNet-1K"));
  EXPECT_THAT(image.cuts, Contains("vit-a/12 instead of vit-a/56"));
  EXPECT_THAT(image.cuts, Contains("84x84 instead of 224x224 pixels"));
  EXPECT_THAT(image.cuts, Contains("10 instead of 1,000 classes"));
  EXPECT_THAT(image.cuts, Contains("1 of 300 passes"));
}

TEST(Plan, CutsOfACallAreNamed) {
  PlanRequest request{"mnist", Budget::paper, {"1"}};
  request.settings = {{"steps", "1200"}, {"eval-limit", "100"}, {"placement", "fresh"}};
  EXPECT_THAT(make_plan(request, {500, 100, 1, 10, {84, 84}, 0}).rows.front().cuts,
              ElementsAre("500 of 60,000 images", "evaluated on 100", "new placement in every pass",
                          "1,200 steps instead of 20 passes"));
}

TEST(Plan, ImagesOnACanvasPreserveTheNumberOfPatchesInTheImagenetTable) {
  const auto plan = plan_of("imagenet", Budget::desk, {"1", "10", "19"});
  EXPECT_EQ(plan.rows[0].model.name(), "vit-a/21");
  EXPECT_EQ(plan.rows[1].model.name(), "vit-a/12");
  EXPECT_EQ(plan.rows[2].model.name(), "vit-a/6");
  EXPECT_EQ(plan.rows[0].model.grid(), plan.rows[0].paper.model.grid());
}

TEST(Plan, AnImageFolderSetsOnlyTheClasses) {
  PlanRequest request{"imagenet", Budget::desk, {"2"}};
  request.data = "images:flowers";
  const auto plan = make_plan(request, {800, 200, 3, 17, {224, 224}, 0});
  EXPECT_EQ(plan.rows.front().model.name(), "vit-a/56");
  EXPECT_EQ(plan.rows.front().model.classes, 17);
  EXPECT_EQ(plan.rows.front().figures.front().set, "val");
}

TEST(Plan, SmallImagesOfAFolderHaveAsManyPatches) {
  const DataFacts small{50000, 10000, 3, 10, {32, 32}, 0};
  PlanRequest request{"position_encodings", Budget::desk, {}, {0}, "images:data/cifar10"};
  request.settings = {{"image-size", "32"}};
  EXPECT_EQ(data_of(request).image_size, 32);
  const auto plan = make_plan(request, small);
  for (const auto& row : plan.rows) {
    EXPECT_EQ(row.model.grid(), row.paper.model.grid());
    EXPECT_EQ(row.model.patch_size, 8);
    EXPECT_THAT(row.cuts, Contains("32x32 instead of 224x224 pixels"));
  }
  request.settings["image-size"] = "32x24";
  EXPECT_EQ(refusal(request, small),
            "--image-size: expected a square, as image folders are cropped to one, got 32x24");
  EXPECT_EQ(refusal({"imagenet", Budget::desk, {}, {0}, "digits", {{"image-size", "32"}}}),
            "--image-size: expected image folders (--data images:DIR), got digits");
}

TEST(Plan, AugmentationIsAnOptionOfImageFoldersOnly) {
  const DataFacts flowers{800, 200, 3, 17, {224, 224}, 0};
  const auto plan_with = [&](const std::map<std::string, std::string>& settings) {
    return make_plan({"imagenet", Budget::desk, {"2"}, {0}, "images:flowers", settings}, flowers);
  };
  const auto setting = [](const ReproducePlan& plan) {
    for (const auto& [name, text] : plan.trainings.front().texts())
      if (name == "augment") return text;
    return std::string();
  };
  const auto full = plan_with({}), light = plan_with({{"augment", "light"}});
  EXPECT_EQ(setting(full), "full");
  EXPECT_EQ(setting(light), "light");
  EXPECT_NE(full.trainings.front().name, light.trainings.front().name);
  EXPECT_THAT(light.rows.front().cuts, Contains("augment light instead of full"));
  EXPECT_THAT(full.rows.front().cuts, Not(Contains(HasSubstr("augment"))));
  const auto digits = plan_of("imagenet", Budget::desk, {"2"});
  EXPECT_EQ(setting(digits), "");
  EXPECT_THAT(digits.rows.front().cuts, Not(Contains(HasSubstr("augment"))));
}

TEST(Plan, QuickModelsAreSmall) {
  EXPECT_EQ(plan_of("imagenet", Budget::quick, {"27"}).rows.front().model.name(), "vit-tiny/6");
  const auto text = plan_of("gpt", Budget::quick, {"9"}, {100, 10, 1, 0, {}, 256});
  EXPECT_EQ(text.rows.front().model.name(), "gpt-tiny-160");
  EXPECT_EQ(text.rows.front().model.vocabulary, 256);
}

TEST(Plan, RowsAreNumbersRangesModelsOrMethods) {
  const auto numbers = [](const std::vector<std::string>& words) {
    std::vector<size_t> found;
    for (const auto& row : plan_of("mnist", Budget::desk, words).rows) found.push_back(row.number);
    return found;
  };
  EXPECT_THAT(numbers({}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(numbers({"6", "2"}), ElementsAre(2, 6));
  EXPECT_THAT(numbers({"2-4"}), ElementsAre(2, 3, 4));
  EXPECT_THAT(numbers({"vit-a/7"}), ElementsAre(4, 5, 6));
  EXPECT_THAT(numbers({"alpha_translution", "1"}), ElementsAre(1, 2, 5));
}

TEST(Plan, RefusesUnknownRowsAndUnsuitableData) {
  for (const std::string word : {"7", "0", "0-1", "5-7", "4-2", "", "1-", "vit-b/12"})
    EXPECT_EQ(refusal({"mnist", Budget::desk, {"1", word}}),
              "rows: '" + word +
                  "' is none of the 6 rows of mnist; expected numbers such as 1,3-5, a model or a "
                  "method");
  EXPECT_EQ(refusal({"minst", Budget::desk}), "unknown table 'minst'; did you mean 'mnist'?");
  EXPECT_EQ(refusal({"gpt", Budget::desk}), "gpt: expected text: --data tokens:DIR, got images");
  EXPECT_EQ(refusal({"mnist", Budget::desk}, {100, 10, 1, 0, {}, 256}),
            "mnist: expected images, got text");
  EXPECT_EQ(refusal({"mnist", Budget::desk, {}, {0}, "images:flowers"}),
            "mnist compares static and moved digits: expected --data digits, mnist:DIR or "
            "idx:DIR, got images:flowers");
}

TEST(Plan, RefusesOptionsThatContradictOrHaveNoEffect) {
  EXPECT_EQ(refusal({"mnist", Budget::desk, {}, {0, 1, 0}}), "seeds: expected different seeds");
  EXPECT_EQ(refusal({"mnist", Budget::desk, {}, {0}, "", {{"epochs", "2"}, {"steps", "9"}}}),
            "--epochs and --steps do not go together; leave one of them out");
  EXPECT_EQ(refusal({"imagenet", Budget::desk, {}, {0}, "images:x", {{"placement", "fresh"}}}),
            "--placement fresh is for images on a canvas: digits, mnist:DIR or idx:DIR, got "
            "images:x");
  EXPECT_EQ(refusal({"imagenet", Budget::desk, {}, {0}, "digits", {{"augment", "light"}}}),
            "--augment: expected image folders (--data images:DIR), got digits");
}

TEST(Plan, EpochsReplaceTheStepsOfTheRecipe) {
  const PlanRequest request{"gpt", Budget::desk, {"1"}, {0}, "", {{"epochs", "2"}}};
  const auto plan = make_plan(request, {1000, 10, 0, 0, {}, 50257});
  EXPECT_EQ(plan.trainings.front().steps, 2 * 1000 / 8);
}

TEST(Plan, ABatchIsNoLargerThanTheData) {
  const auto plan = plan_of("mnist", Budget::desk, {"1"}, {8, 10, 1, 10, {84, 84}, 0});
  EXPECT_EQ(plan.trainings.front().train.batch, 8);
  EXPECT_THAT(plan.rows.front().cuts, Contains("batch 8 instead of 256"));
}

TEST(Plan, DataOfRecipesIsKnownBeforeItIsFetched) {
  for (const auto budget : {Budget::desk, Budget::paper})
    for (const auto& name : paper_table_names()) {
      const auto facts = known_data(data_of({name, budget}).data)->facts;
      EXPECT_FALSE(plan_of(name, budget, {}, facts).trainings.empty()) << name;
    }
  EXPECT_FALSE(known_data("images:flowers"));
}

TEST(Forecast, GrowsWithTheStepsAndFallsWithTheRate) {
  PlanRequest request{"mnist", Budget::paper, {"2"}};
  request.settings = {{"steps", "1000"}, {"eval-every", "1000"}};
  const auto short_run = make_plan(request, kDigits).trainings.front();
  request.settings["steps"] = "2000";
  const auto long_run = make_plan(request, kDigits).trainings.front();
  const auto one = forecast(short_run, kDigits, 200), two = forecast(long_run, kDigits, 200);
  EXPECT_NEAR(two.seconds / one.seconds, 2, 1e-9);
  EXPECT_EQ(two.bytes, one.bytes);
  EXPECT_NEAR(forecast(short_run, kDigits, 400).seconds, one.seconds / 2, 1e-9);
}

}  // namespace
}  // namespace translution
