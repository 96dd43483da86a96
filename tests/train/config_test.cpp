#include "translution/train/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace translution {
namespace {

using Texts = std::map<std::string, std::string>;
const std::vector<std::string> kKnown = {"lr", "batch", "eval-on", "placement", "data"};

std::string message_of(const std::string& toml) {
  try {
    parse_config(toml, "run.toml", kKnown);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Config, ParsesTextNumbersSwitchesListsAndSections) {
  const auto texts = parse_config(
      "lr = 0.25\n[data]\neval-on = [\"static\", \"dynamic\"]\nplacement = true\n[train]\nbatch = "
      "64\n",
      "run.toml", kKnown);
  EXPECT_EQ(
      texts,
      (Texts{{"lr", "0.25"}, {"eval-on", "static,dynamic"}, {"placement", "on"}, {"batch", "64"}}));
}

TEST(Config, ReadsBackTheSame) {
  const SettingTexts texts = {{"data", "mnist:C:\\a \"b\"\n\t\x1f\x7f"}, {"lr", "0.1"}};
  const auto text = format_config({"a comment"}, {{"run", texts}});
  EXPECT_EQ(parse_config(text, "run.toml", kKnown), (Texts{texts.begin(), texts.end()}));
}

TEST(Config, AcceptsNonAsciiOnlyInQuotesAndComments) {
  const auto texts = parse_config("# größe\ndata = \"mnist:größe\" # ß\n", "run.toml", kKnown);
  EXPECT_EQ(texts, (Texts{{"data", "mnist:größe"}}));
  EXPECT_THAT(message_of("lr = 1\ngröße = 2\n"), testing::StartsWith("run.toml:2: "));
  EXPECT_THAT(message_of("lr = 1\nbatch = Ơ\n"), testing::StartsWith("run.toml:2: "));
  EXPECT_THAT(message_of(std::string("[\0a]\nlr = 1\n", 12)), testing::StartsWith("run.toml:1: "));
}

TEST(Config, NamesTheErrorInTheFile) {
  EXPECT_EQ(message_of("bach = 1"), "run.toml: unknown setting 'bach'; did you mean 'batch'?");
  EXPECT_EQ(message_of("foo = 1"),
            "run.toml: unknown setting 'foo'; see `translution train --help`");
  EXPECT_EQ(message_of("[a]\nlr = 1\n[b]\nlr = 2\n"), "run.toml: lr is given more than once");
  EXPECT_EQ(message_of("lr = [[1]]"),
            "run.toml: lr: expected a list without lists or tables in it");
  EXPECT_THAT(message_of("lr = 1\nbatch ="), testing::StartsWith("run.toml:2: "));
}

}  // namespace
}  // namespace translution
