#include "apps/translution/reproduce/results.h"

#include <gmock/gmock.h>

#include "apps/translution/reproduce/document.h"
#include "apps/translution/reproduce/markdown.h"
#include "apps/translution/reproduce/run_record.h"
#include "tests/support/temp_dir.h"
#include "translution/train/metrics_log.h"

namespace translution::testing {

using namespace cli;

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const DataFacts kDigits{60000, 10000, 1, 10, {84, 84}, 0};

// The log of a training: half of `steps` at 50 samples/s, the rest at 100, then an evaluation.
void put_log(const std::string& runs, const Training& training, int64_t steps, double top1) {
  const std::string run = runs + "/" + training.name;
  std::filesystem::create_directories(run);
  write_run_record(run, {"a machine, 2 threads", "commit abc"});
  MetricsLog log(run);
  log.add({steps / 2, 0.5, "train", {{"loss", 2.0}, {"samples_per_s", 50.0}}});
  log.add({steps, 1.0, "train", {{"loss", 1.0}, {"samples_per_s", 100.0}}});
  for (const char* set : {"static", "dynamic"})
    log.add({steps, 1.0, set, {{"loss", 0.5}, {"top1", top1}, {"top5", 1.0}}});
}

StepResult step_of(const RowName& row, int64_t batch) {
  return {row, 4590634, batch, 4, 12.5, 19e9, 2.3, "random", "cmd", "m", "c"};
}

// The mnist table of the desk budget; some of its trainings have a log.
class CollectedResults : public ::testing::Test {
 protected:
  static ReproducePlan plan_of(std::vector<std::string> rows) {
    return make_plan({"mnist", Budget::desk, std::move(rows)}, kDigits);
  }
  Results collect(const ReproducePlan& plan) const {
    return collect_results(plan, runs_.path(), [](const PlanRow& row) {
      return "translution reproduce mnist --rows " + std::to_string(row.number);
    });
  }
  // Both trainings of each row, finished.
  Results finished(const std::vector<double>& top1) const {
    const auto plan = plan_of({"1-" + std::to_string(top1.size())});
    for (size_t r = 0; r < plan.rows.size(); ++r)
      for (const auto& figure : plan.rows[r].figures) {
        const auto& training = plan.trainings[figure.training];
        put_log(runs_.path(), training, training.steps, top1[r]);
      }
    return collect(plan);
  }

  const TempDir runs_;
};

TEST_F(CollectedResults, MatchTheLogs) {
  const auto plan = plan_of({"2"});
  const auto& moved = plan.trainings[plan.rows.front().figures[1].training];
  put_log(runs_.path(), moved, moved.steps, 0.97312);
  const auto results = collect(plan);
  ASSERT_EQ(results.rows.size(), 1);
  const auto& row = results.rows.front();
  EXPECT_EQ(row.model, "vit-a/12");
  EXPECT_EQ(row.method, "alpha_translution");
  EXPECT_EQ(row.parameters, 4590634);
  EXPECT_EQ(row.figures[1].ours, 97.312);
  EXPECT_EQ(row.figures[1].paper, 97.31);
  EXPECT_EQ(row.figures[0].ours, std::nullopt);  // the static training has not begun
  const auto& run = row.runs[1];
  EXPECT_TRUE(run.finished());
  EXPECT_EQ(run.seen, moved.steps * 64);
  EXPECT_EQ(run.machine, "a machine, 2 threads");
  const double half = static_cast<double>(moved.steps / 2) * 64;
  EXPECT_NEAR(run.seconds, half / 50 + (static_cast<double>(run.seen) - half) / 100, 1e-6);
}

TEST_F(CollectedResults, LeaveOutRowsWithoutASingleStep) {
  EXPECT_EQ(collect(plan_of({"1-3"})).rows.size(), 0);
}

TEST_F(CollectedResults, SurviveARoundTripThroughJson) {
  auto results = finished({0.9, 0.97});
  results.steps.push_back(step_of(results.rows[1], 256));
  const auto text = to_json(results).dump(1);
  EXPECT_EQ(to_json(parse_results(text, "f")).dump(1), text);
}

TEST_F(CollectedResults, AreFloat32WhereOlderFilesHaveNoPrecision) {
  auto results = finished({0.9, 0.97});
  results.steps.push_back(step_of(results.rows[1], 256));
  results.rows[0].runs[0].precision = results.steps[0].precision = "bf16";
  auto json = to_json(results);
  const auto again = parse_results(json.dump(), "f");
  EXPECT_EQ(again.rows[0].runs[0].precision, "bf16");
  EXPECT_EQ(again.rows[1].runs[0].precision, "float32");
  EXPECT_EQ(again.steps[0].precision, "bf16");
  EXPECT_THAT(markdown_table(again), HasSubstr("; precision bf16"));
  for (auto& row : json["rows"])
    for (auto& run : row["runs"]) run.erase("precision");
  json["steps"][0].erase("precision");
  const auto older = parse_results(json.dump(), "f");
  EXPECT_EQ(older.rows[0].runs[0].precision, "float32");
  EXPECT_EQ(older.steps[0].precision, "float32");
  EXPECT_EQ(merge_results(older, again).steps.size(), 2) << "a step for each precision";
}

TEST_F(CollectedResults, RefuseOtherFilesWithTheirPath) {
  for (const char* text : {"", "[]", "{\"table\": 3}", "{\"table\": \"mnist\", \"title\": \"\"}"})
    EXPECT_THAT([&] { parse_results(text, "some.json"); },
                ::testing::ThrowsMessage<std::runtime_error>(
                    HasSubstr("some.json: not a results file of `translution reproduce`")));
}

TEST_F(CollectedResults, RefuseRowsWithDifferentFigures) {
  auto results = finished({0.9, 0.97});
  results.rows[1].figures.pop_back();
  EXPECT_THAT([&] { parse_results(to_json(results).dump(), "some.json"); },
              ::testing::ThrowsMessage<std::runtime_error>(
                  HasSubstr("expected runs and equally many figures in every row")));
}

TEST_F(CollectedResults, ReplaceTheSameRowsAndKeepTheOthers) {
  const auto older = finished({0.9, 0.95});
  auto fresh = older;
  fresh.rows.erase(fresh.rows.begin());
  fresh.rows[0].figures[1].ours = 96.0;
  const auto merged = merge_results(older, fresh);
  ASSERT_EQ(merged.rows.size(), 2);
  EXPECT_EQ(merged.rows[0].number, 1);
  EXPECT_EQ(merged.rows[1].figures[1].ours, 96.0);
}

TEST_F(CollectedResults, ReplaceTheSameStepsAndKeepTheOthers) {
  auto older = finished({0.9, 0.95}), fresh = older;
  older.steps = {step_of(older.rows[0], 64), step_of(older.rows[1], 256)};
  fresh.rows.clear();
  fresh.steps = {step_of(older.rows[1], 256)};
  fresh.steps[0].seconds = 7;
  const auto merged = merge_results(older, fresh);
  EXPECT_EQ(merged.rows.size(), 2);
  ASSERT_EQ(merged.steps.size(), 2);
  EXPECT_EQ(merged.steps[0].seconds, 12.5);
  EXPECT_EQ(merged.steps[1].seconds, 7);
}

// Row 1 of relative_vs_absolute is row 2 of mnist, under another name.
TEST_F(CollectedResults, AreReusedFromOtherTables) {
  const auto mnist = finished({0.9, 0.97});
  const auto plan = make_plan({"relative_vs_absolute", Budget::desk, {"1", "2"}}, kDigits);
  const auto known = known_runs(plan, {mnist});
  EXPECT_EQ(known.size(), 2);
  const TempDir nowhere;
  const auto results = collect_results(
      plan, nowhere.path(), [](const PlanRow&) { return "command"; }, known);
  ASSERT_EQ(results.rows.size(), 1);
  EXPECT_EQ(results.rows[0].variant, "encoding relative");
  EXPECT_EQ(results.rows[0].command, "command");
  for (size_t f = 0; f < 3; ++f) {
    EXPECT_EQ(results.rows[0].figures[f].ours, 97.0);
    EXPECT_EQ(results.rows[0].figures[f].step, mnist.rows[1].figures[f].step);
  }
  ASSERT_EQ(results.rows[0].runs.size(), 2);
  EXPECT_EQ(results.rows[0].runs[0].machine, "a machine, 2 threads");
}

TEST_F(CollectedResults, AreNotReusedIfUnfinishedOrWithoutAFigure) {
  const auto plan = plan_of({"2"});
  auto begun = finished({0.9, 0.97});
  for (auto& run : begun.rows[1].runs) --run.step;
  EXPECT_EQ(known_runs(plan, {begun}).size(), 0);
  auto other = finished({0.9, 0.97});
  for (auto& figure : other.rows[1].figures) figure.metric = "top5";
  EXPECT_EQ(known_runs(plan, {other}).size(), 0);
  auto longer = finished({0.9, 0.97});
  for (auto& run : longer.rows[1].runs) ++run.step, ++run.steps;
  for (auto& figure : longer.rows[1].figures) ++figure.step;
  EXPECT_EQ(known_runs(plan, {longer}).size(), 0);
}

TEST_F(CollectedResults, KeepTheTrainingWithMoreSteps) {
  const auto older = finished({0.9});
  const auto plan = plan_of({"1"});
  const TempDir anew;
  put_log(anew.path(), plan.trainings.front(), 2000, 0.5);
  const auto begun = collect_results(plan, anew.path(), [](const PlanRow&) { return ""; });
  const auto merged = merge_results(older, begun);
  ASSERT_EQ(merged.rows.size(), 1);
  for (const auto& figure : merged.rows[0].figures) EXPECT_EQ(figure.ours, 90.0) << figure.name;
  for (const auto& run : merged.rows[0].runs) EXPECT_TRUE(run.finished());
}

TEST_F(CollectedResults, KeepRowsTrainedInAnotherWay) {
  const auto older = finished({0.9});
  auto longer = make_plan({"mnist", Budget::desk, {"1"}, {0}, "", {{"epochs", "10"}}}, kDigits);
  for (const auto& training : longer.trainings)
    put_log(runs_.path(), training, training.steps, 0.95);
  const auto merged = merge_results(older, collect(longer));
  ASSERT_EQ(merged.rows.size(), 2);
  EXPECT_EQ(merged.rows[0].cuts.front(), "10 of 20 passes");
  EXPECT_EQ(merged.rows[0].figures[1].ours, 95.0);
  EXPECT_EQ(merged.rows[1].cuts.front(), "5 of 20 passes");
  EXPECT_EQ(merged.rows[1].figures[1].ours, 90.0);
}

// ------------------------------------------------------------------------------------ Markdown

using MarkdownTable = CollectedResults;

constexpr const char* kOpen = "their order is open";

TEST_F(MarkdownTable, HasThePapersFiguresInBrackets) {
  const auto text = markdown_table(finished({0.93, 0.9731}));
  EXPECT_THAT(text, HasSubstr("| method | parameters | static → static % | dynamic → dynamic % | "
                              "static → dynamic % |\n"));
  EXPECT_THAT(text, HasSubstr("| `alpha_translution` | 4,590,634 (4.6 M) | **97.31** (98.48) | "
                              "**97.31** (97.31) | **97.31** (34.90) |\n"));
  EXPECT_THAT(text, Not(HasSubstr(kOpen)));
}

TEST_F(MarkdownTable, StatesTheCutsOnceAboveEachGroupOfRows) {
  auto results = finished({0.93, 0.9731, 0.98});
  EXPECT_THAT(
      markdown_table(results),
      HasSubstr(
          " with vit-a/12. The paper's figures are in brackets. One seed each.\n\nChanged from the "
          "full recipe: 5 of 20 passes, batch 64 instead of 256, warmup 250 instead "
          "of 200.\n\n| method |"));
  results.rows[2].cuts.front() = "1 of 20 passes";
  for (auto& run : results.rows[2].runs) run.seen /= 5;
  const auto text = markdown_table(results);
  const auto one = text.find("recipe: **1 of 20 passes**, batch 64 instead of 256, ");
  const auto five = text.find("recipe: **5 of 20 passes**, batch 64 instead of 256, ");
  EXPECT_LT(one, text.find("| `translution` |"));
  EXPECT_LT(text.find("| `translution` |"), five);
  EXPECT_LT(five, text.find("| `self_attention` |"));
}

TEST_F(MarkdownTable, NamesTheModelOfEachRowWhereTheyDiffer) {
  auto results = finished({0.93, 0.9731});
  results.rows[1].model = "vit-a/7";
  const auto text = markdown_table(results);
  EXPECT_THAT(text, Not(HasSubstr(" with vit-a/12")));
  EXPECT_THAT(text, HasSubstr("| model | method |"));
  EXPECT_THAT(text, HasSubstr("| vit-a/7 | `alpha_translution` |"));
}

TEST_F(MarkdownTable, FoldsCommandsWithMachinesAndTimes) {
  const auto text = markdown_table(finished({0.93, 0.9731}));
  EXPECT_THAT(text,
              HasSubstr("<details><summary>Commands, machines and times</summary>\n\n```sh\n"
                        "# a machine, 2 threads; commit abc\n"
                        "translution reproduce mnist --rows 1  # 299,840 images, static 4,4"));
  EXPECT_THAT(text, HasSubstr(" s\ntranslution reproduce mnist --rows 2  # ")) << "one machine";
  EXPECT_THAT(text, HasSubstr("\n```\n\n</details>\n"));
}

TEST_F(MarkdownTable, NamesTheStepOfAnUnfinishedFigure) {
  const auto plan = plan_of({"2"});
  put_log(runs_.path(), plan.trainings.front(), 2000, 0.9);
  const auto text = markdown_table(collect(plan));
  EXPECT_THAT(text, HasSubstr("| – (98.48) | 90.00 at step 2,000 of 4,685 (97.31) | – (34.90) |"));
}

TEST_F(MarkdownTable, MarksOpenOrdersWithALetter) {
  const auto text = markdown_table(finished({0.93, 0.9731, 0.9735}));
  EXPECT_THAT(text, HasSubstr("**93.00** (98.48)"));
  EXPECT_THAT(text, HasSubstr("**97.31** <sup>a</sup> (98.48)"));
  EXPECT_THAT(text, HasSubstr("**97.35** <sup>a</sup> (98.60)"));
  EXPECT_THAT(text, HasSubstr(kOpen));
}

TEST_F(MarkdownTable, GivesTwoLettersToAFigureBetweenTwoThatAreFurtherApart) {
  const auto text = markdown_table(finished({0.96, 0.966, 0.972}));
  EXPECT_THAT(text, HasSubstr("**96.00** <sup>a</sup> (98.48)"));
  EXPECT_THAT(text, HasSubstr("**96.60** <sup>a,b</sup> (98.48)"));
  EXPECT_THAT(text, HasSubstr("**97.20** <sup>b</sup> (98.60)"));
}

TEST_F(MarkdownTable, OpensNoOrderOfRowsTrainedInDifferentWays) {
  auto results = finished({0.93, 0.9731, 0.9735});
  results.rows[2].cuts.front() = "1 of 20 passes";
  EXPECT_THAT(markdown_table(results), Not(HasSubstr(kOpen)));
  results.rows[1].cuts.front() = "1 of 20 passes";
  EXPECT_THAT(markdown_table(results), HasSubstr(kOpen));
}

TEST_F(MarkdownTable, HasTheMeansOfSeveralSeeds) {
  auto results = finished({0.96, 0.97});
  const auto more = finished({0.968, 0.977});
  for (auto row : more.rows) {
    row.seed = 1;
    results.rows.push_back(row);
  }
  const auto text = markdown_table(results);
  EXPECT_THAT(text, HasSubstr("mean ± half of the range"));
  EXPECT_THAT(text, HasSubstr("| `self_attention` | 2,706,346 (2.7 M) | 2 | **96.40** ± 0.40 (98"));
  EXPECT_THAT(text, HasSubstr("| 2 | **97.35** ± 0.35 (98.48) |"));
  EXPECT_THAT(text, Not(HasSubstr(kOpen))) << "each seed of one beats all of the other";
  results.rows[2].figures[0].ours = 97.1;
  EXPECT_THAT(markdown_table(results), HasSubstr("**96.55** ± 0.55 <sup>a</sup> (98.48)"));
}

TEST_F(MarkdownTable, CountsOnlySeedsThatDifferAndAreFinished) {
  auto results = finished({0.96});
  results.rows.push_back(results.rows.front());
  EXPECT_THAT(markdown_table(results), Not(HasSubstr("| seeds |")));
  results.rows.back().seed = 1;
  EXPECT_THAT(markdown_table(results), HasSubstr("| seeds |"));
  for (auto& run : results.rows.back().runs) run.steps *= 2;
  EXPECT_THAT(markdown_table(results), Not(HasSubstr("| seeds |")));
}

TEST_F(MarkdownTable, KeepsABarInsideItsCell) {
  auto results = finished({0.96});
  results.rows.front().variant = "data images:a|b";
  EXPECT_THAT(markdown_table(results), HasSubstr(", data images:a\\|b |"));
}

TEST_F(MarkdownTable, GroupsSingleStepsByTheirData) {
  auto results = finished({0.96, 0.97});
  results.steps = {step_of(results.rows[0], 64), step_of(results.rows[1], 256)};
  results.steps[1].data = "mnist:data/mnist";
  const auto text = markdown_table(results);
  EXPECT_THAT(text, HasSubstr("One step of training; data: mnist:data/mnist.\n\n| model |"));
  EXPECT_THAT(text, HasSubstr("One step of training; data: random.\n\n| model |"));
  EXPECT_THAT(text,
              HasSubstr("| vit-a/12 | `self_attention` | 4,590,634 | 64 | 4 | 12.5 | 19.00 |"));
}

// ------------------------------------------------------------------- the summary and comparisons

using MarkdownSummary = CollectedResults;

// Row 1 with two initialisations for five passes, row 2 with one of them for one pass.
Results differently_trained(Results results) {
  auto& rows = results.rows;
  rows.push_back(rows[0]);
  rows.back().cuts.insert(rows.back().cuts.begin(), "init scaled instead of authors");
  for (auto& run : rows.back().runs) run.name += "-scaled";
  for (auto& figure : rows.back().figures) figure.run += "-scaled", *figure.ours += 0.5;
  rows[1].cuts.front() = "1 of 20 passes";
  for (auto& run : rows[1].runs) run.seen /= 5;
  return results;
}

TEST_F(MarkdownSummary, HasEachRowOnceAsBestTrained) {
  const auto text = markdown_summary(differently_trained(finished({0.93, 0.9731})));
  EXPECT_THAT(text, HasSubstr("recipe: batch 64 instead of 256, warmup 250 instead of 200.\n\n"
                              "| method | static → static % |"));
  EXPECT_THAT(text, HasSubstr("| `self_attention`, 5 of 20 passes | **93.00** (98.48) |"));
  EXPECT_THAT(text, HasSubstr("| `alpha_translution`, 1 of 20 passes | **97.31** (98.48) |"));
  EXPECT_THAT(text, HasSubstr("\n\nRows that were trained differently are not compared.\n"));
  EXPECT_THAT(text, Not(HasSubstr("scaled")));
  EXPECT_THAT(text, Not(HasSubstr("```")));
}

TEST_F(MarkdownSummary, SaysWhichOrdersAreOpen) {
  EXPECT_THAT(markdown_summary(finished({0.97, 0.9731})), HasSubstr(kOpen));
  EXPECT_THAT(markdown_summary(finished({0.96, 0.9731})), Not(HasSubstr(kOpen)));
}

TEST_F(MarkdownTable, ComparesRowsThatDifferInOneOption) {
  const auto results = differently_trained(finished({0.93, 0.9731}));
  const auto text = markdown_comparison("init", results);
  EXPECT_THAT(text, HasSubstr("recipe: 5 of 20 passes, batch 64 instead of 256, "));
  EXPECT_THAT(text, HasSubstr("| method | init | static → static % |"));
  EXPECT_THAT(text, HasSubstr("| `self_attention` | authors | **93.00** <sup>a</sup> (98.48) |"));
  EXPECT_THAT(text, HasSubstr("| `self_attention` | scaled | **93.50** <sup>a</sup> (98.48) |"));
  EXPECT_THAT(text, Not(HasSubstr("`alpha_translution`")));
  EXPECT_THAT([&] { markdown_comparison("lr", results); },
              ::testing::ThrowsMessage<std::runtime_error>(
                  HasSubstr("results of mnist: no rows differ in lr alone")));
}

// ------------------------------------------------------------------------------------- documents

TEST_F(MarkdownTable, FillsInADocumentBetweenMarks) {
  const auto results = finished({0.93});
  const std::string before =
      "# Title\n<!-- results mnist -->\nold\n<!-- end of results -->\nrest\n";
  const auto after = fill_in(before, {results}, "doc.md");
  EXPECT_THAT(after, HasSubstr("<!-- results mnist -->\n\n" + markdown_table(results) +
                               "\n<!-- end of results -->\nrest\n"));
  EXPECT_THAT(after, Not(HasSubstr("old")));
  EXPECT_EQ(fill_in(after, {results}, "doc.md"), after);
}

TEST_F(MarkdownTable, FillsInSummariesAndComparisons) {
  const auto results = differently_trained(finished({0.93, 0.9731}));
  EXPECT_EQ(
      fill_in("<!-- summary mnist -->\n<!-- end of results -->\n", {results}, "d"),
      "<!-- summary mnist -->\n\n" + markdown_summary(results) + "\n<!-- end of results -->\n");
  EXPECT_EQ(fill_in("<!-- compare mnist init -->\n<!-- end of results -->\n", {results}, "d"),
            "<!-- compare mnist init -->\n\n" + markdown_comparison("init", results) +
                "\n<!-- end of results -->\n");
}

TEST_F(MarkdownTable, RefusesMarksThatDoNotFit) {
  const auto refused = [](const std::string& document) {
    try {
      fill_in(document, {}, "doc.md");
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused("<!-- results gpt -->\n<!-- end of results -->\n"),
            "doc.md: '<!-- results gpt -->': there are no results of that name");
  EXPECT_EQ(refused("<!-- end of results -->\n"),
            "doc.md: '<!-- end of results -->' without a beginning");
  const auto results = finished({0.93});
  EXPECT_THAT([&] { fill_in("<!-- results mnist -->\n", {results}, "doc.md"); },
              ::testing::ThrowsMessage<std::runtime_error>(
                  HasSubstr("the results are not closed with '<!-- end of results -->'")));
}

}  // namespace
}  // namespace translution::testing
