#include "translution/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/report/demo_data.h"
#include "tests/report/markup.h"
#include "translution/core/error.h"
#include "translution/report/html.h"

namespace translution {

using namespace detail;

namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kHostile =
    "<script>alert(1)</script>\"'>&amp;<img src=http://x onerror=y>\x01";

// Makes a report and checks that it is well formed and self-contained.
std::string checked_report(const ReportData& data) {
  const std::string page = make_report(data);
  EXPECT_EQ(markup_fault(page), "");
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
  for (const auto& value : attribute_values(page, "src"))
    EXPECT_THAT(value, StartsWith("data:image/png;base64,"));
  for (const auto& value : attribute_values(page, "href"))
    EXPECT_TRUE(value[0] == '#' || value.rfind("data:image/png;", 0) == 0) << value;
  return page;
}

ReportData one_run(ReportRun run) {
  ReportData data;
  data.title = "A report";
  data.runs.push_back(std::move(run));
  return data;
}

const RgbImage kPixel{1, 1, {7, 7, 7}};

ReportSample sample(const std::string& truth, const std::string& predicted, double probability) {
  ReportSample result;
  result.image = kPixel;
  result.truth = truth, result.predicted = predicted;
  result.probability = probability;
  return result;
}

// One head over 1x2 patches.
ReportAttention attention(const std::string& caption, int64_t query, std::vector<double> weights) {
  ReportAttention result;
  result.caption = caption;
  result.picture.image = kPixel;
  result.picture.rows = 1, result.picture.cols = 2, result.picture.query = query;
  result.picture.heads.push_back({1, 1, std::move(weights)});
  return result;
}

TEST(Html, EncodesImagesInBase64) {
  // RFC 4648, section 10.
  const std::pair<const char*, const char*> known[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : known) EXPECT_EQ(base64(plain), encoded);
  EXPECT_EQ(base64(std::string("\xff\xfe\x00", 3)), "//4A");
  EXPECT_THAT(image_uri(kPixel), StartsWith("data:image/png;base64,iVBOR"));
}

TEST(Html, EscapesSpecialCharacters) {
  EXPECT_EQ(html_escape("a<b>&\"c'\n"), "a&lt;b&gt;&amp;&quot;c&#39;\n");
  EXPECT_EQ(html_escape("é ✓"), "é ✓");
  EXPECT_EQ(html_escape(std::string("\0\x1b", 2)), "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Html, ShortensTextByCharacters) {
  EXPECT_EQ(shortened("abcde", 5), "abcde");
  EXPECT_EQ(shortened("abcdef", 5), "ab…ef");
  EXPECT_EQ(shortened("aéééb", 4), "aé…b");
  EXPECT_EQ(shortened("abcdef", 3), "a…f");
  EXPECT_EQ(shortened("", 4), "");
}

TEST(Report, OfSyntheticRunsHasAllSectionsAndIsSmall) {
  const std::string page = checked_report(demo_report());
  for (const char* title : {">Summary<", ">Curves<", ">Confusion on dynamic<",
                            ">Samples on dynamic<", ">Attention maps on dynamic<",
                            ">Norms of the learned matrices by offset<", ">Configuration<"})
    EXPECT_THAT(page, HasSubstr(title));
  EXPECT_LT(page.size(), size_t{3} << 20);
  ReportData over_epochs = demo_report();
  over_epochs.over_epochs = true;
  EXPECT_THAT(checked_report(over_epochs), HasSubstr(">epoch<"));
}

TEST(Report, LeavesOutEmptySections) {
  EXPECT_THAT(checked_report({}), Not(HasSubstr("<section")));
  EXPECT_THAT(checked_report(one_run({})), Not(HasSubstr("<section")));
  ReportRun run;
  run.name = "one";
  run.series = {{"loss", "train", {}}};
  EXPECT_THAT(checked_report(one_run(run)), Not(HasSubstr("<section")));
  run.series = {{"loss", "train", {{1, 0.1, 2.0}}}};
  const std::string page = checked_report(one_run(run));
  EXPECT_THAT(page, HasSubstr(">Curves<"));
  EXPECT_THAT(page, Not(HasSubstr(">Configuration<")));
}

TEST(Report, EscapesHostileNames) {
  ReportRun run;
  run.name = kHostile;
  run.summary = run.config = {{kHostile, kHostile}};
  run.series = {{kHostile, kHostile, {{1, 1, 1}, {2, 2, 2}}}, {kHostile, "train", {{1, 1, 3}}}};
  run.evaluations = {{kHostile,
                      ReportConfusion{{kHostile, "b"}, {1, 2, 3, 4}},
                      {sample(kHostile, kHostile, 0.5), sample(kHostile, "b", NAN)},
                      {attention(kHostile, 1, {0.5, 0.5})}}};
  run.norms = {{kHostile, 3, 3, std::vector<double>(9, 1.0), {{kHostile, 1}}},
               {kHostile, 1, 3, {1, 2, 3}, {}}};
  ReportData data = one_run(run);
  data.title = data.subtitle = kHostile;
  data.runs.push_back(run);
  EXPECT_THAT(checked_report(data), HasSubstr("&lt;script&gt;"));
}

TEST(Report, DrawsRunsWithValuesThatAreNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  ReportRun run;
  run.name = "failed";
  run.series = {{"loss", "train", {{1, 0, 2}, {2, 0, NAN}, {3, 0, infinity}, {4, 0, -infinity}}},
                {"loss", "val", {{4, 0, NAN}}},
                {"top-1", "val", {{4, 0, 0.5}}}};
  run.norms = {{"all NaN", 3, 3, std::vector<double>(9, NAN), {{"class token", infinity}}}};
  run.evaluations = {{"", {}, {}, {attention("", -1, {NAN, infinity})}}};
  checked_report(one_run(run));
  run.norms.clear();
  run.evaluations[0].confusion = ReportConfusion{{"a", "b"}, {0, 0, 0, 0}};
  EXPECT_THAT(checked_report(one_run(run)), HasSubstr("No samples."));
}

TEST(Report, ShowsManyClassesInATableInsteadOfAMatrix) {
  ReportRun run;
  run.name = "many";
  ReportConfusion confusion;
  for (int i = 0; i < 300; ++i) confusion.classes.push_back("class " + std::to_string(i));
  confusion.counts.assign(300 * 300, 0);
  confusion.counts[7 * 300 + 8] = 12;
  run.evaluations = {{"val", confusion, {}, {}}};
  const std::string page = checked_report(one_run(run));
  EXPECT_THAT(page, HasSubstr("<th>class 7</th><td>class 8</td><td>12</td>"));
  EXPECT_THAT(page, Not(HasSubstr("<svg")));
}

TEST(Report, ShowsEveryEvaluationSetUnderItsName) {
  ReportRun run;
  run.name = "both";
  for (const char* set : {"static", "dynamic"})
    run.evaluations.push_back({set,
                               ReportConfusion{{"a", "b"}, {1, 2, 3, 4}},
                               {sample("a", "b", 0.5)},
                               {attention("", 1, {0.5, 0.5})}});
  const std::string page = checked_report(one_run(run));
  for (const char* part : {"Confusion", "Samples", "Attention maps"})
    for (const char* set : {"static", "dynamic"})
      EXPECT_THAT(page, HasSubstr(join(">", part, " on ", set, "<")));
}

TEST(Report, ShowsWhereRunsDiffer) {
  ReportData data = one_run({});
  data.runs[0].name = "a";
  data.runs[0].config = {{"lr", "0.1"}, {"batch", "8"}};
  data.runs.push_back(data.runs[0]);
  data.runs[1].name = "b";
  data.runs[1].config[0].second = "0.2";
  const std::string page = checked_report(data);
  EXPECT_THAT(page, HasSubstr("<th>lr</th><td>0.1</td><td>0.2</td>"));
  EXPECT_THAT(page, HasSubstr("<dt>batch</dt><dd>8</dd>"));
}

TEST(Report, RefusesInconsistentDataAndNamesTheRun) {
  std::vector<ReportRun> bad(6);
  bad[0].evaluations = {{"", ReportConfusion{{"a", "b"}, {1, 2, 3}}, {}, {}}};
  bad[1].evaluations = {{"", ReportConfusion{{"a"}, {-1}}, {}, {}}};
  bad[2].evaluations = {{"", {}, {sample("", "", 0)}, {}}};
  bad[2].evaluations[0].samples[0].image.rows = 3;
  bad[3].evaluations = {{"", {}, {}, {attention("", 2, {1, 2})}}};
  bad[4].evaluations = {{"", {}, {}, {attention("", 0, {1, 2, 3})}}};
  bad[5].norms = {{"", 3, 3, {1}, {}}};
  for (auto& run : bad) {
    run.name = "bad";
    try {
      make_report(one_run(run));
      ADD_FAILURE();
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), StartsWith("report: run 'bad': "));
    }
  }
}

}  // namespace
}  // namespace translution
