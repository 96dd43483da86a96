#include "translution/data/cloud_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/idx_files.h"

namespace translution {
namespace {

using ::testing::ElementsAre;
using testing::message_of;

TEST(CloudText, HasNumbersOrClassesAsTargets) {
  const auto numbers = parse_cloud_text(
      "# two molecules\naxes 3\ntargets numbers\nfeatures H C\n\ncloud -417.5 2 # CH\n"
      "0 0 0  0 1\r\n1.09\t0 0  1 0\ncloud +2e1 1\n-1 -2 -3 0.5 0\n",
      "train.txt");
  EXPECT_EQ(numbers.axes, 3);
  EXPECT_EQ(numbers.targets, CloudTargets::numbers);
  EXPECT_THAT(numbers.features, ElementsAre("H", "C"));
  EXPECT_THAT(numbers.numbers, ElementsAre(-417.5, 20));
  ASSERT_EQ(numbers.clouds.size(), 2u);
  EXPECT_THAT(numbers.clouds[0].positions, ElementsAre(0, 0, 0, 1.09f, 0, 0));
  EXPECT_THAT(numbers.clouds[0].features, ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(numbers.clouds[1].features, ElementsAre(0.5, 0));

  const auto classes = parse_cloud_text(
      "targets classes\naxes 1\ncloud left 1\n-1\ncloud rechts-Größe 2\n1\n2", "train.txt");
  EXPECT_EQ(classes.targets, CloudTargets::classes);
  EXPECT_THAT(classes.classes, ElementsAre("left", "rechts-Größe"));
  EXPECT_THAT(classes.clouds[1].positions, ElementsAre(1, 2));
  EXPECT_THAT(classes.clouds[1].features, ElementsAre(1, 1)) << "without features: one of 1";

  const auto unknown = parse_cloud_text("targets none\naxes 1\ncloud 1\n-1\ncloud 2\n1\n2", "a");
  EXPECT_EQ(unknown.targets, CloudTargets::none);
  EXPECT_EQ(unknown.clouds.size(), 2u);
  EXPECT_EQ(unknown.classes.size() + unknown.numbers.size(), 0u);
}

struct WrongText {
  const char* text;
  const char* message;
};

TEST(CloudText, ReportsEveryMistakeWithItsLine) {
  const std::string classes = "axes 2\ntargets classes\n";
  const WrongText wrong[] = {
      {"", "a.txt: has no clouds; expected lines 'cloud TARGET POINTS'"},
      {"hello", "a.txt:1: expected axes, targets, features or cloud, got 'hello'"},
      {"axes 4", "a.txt:1: expected 'axes 1', 'axes 2' or 'axes 3'"},
      {"axes 3\naxes 3", "a.txt:2: a second line 'axes'"},
      {"targets words", "a.txt:1: expected 'targets classes', 'targets numbers' or 'targets none'"},
      {"cloud a 1", "a.txt:1: expected 'axes 1', 'axes 2' or 'axes 3' before the first cloud"},
      {"axes 2\ncloud a 1",
       "a.txt:2: expected 'targets classes', 'targets numbers' or 'targets none' before the first "
       "cloud"},
      {"axes 2\ntargets none\ncloud a 1", "a.txt:3: expected 'cloud POINTS'"},
      {"axes 2\ntargets numbers\ncloud a 1", "a.txt:3: expected a number as target, got 'a'"},
      {"axes 2\ntargets numbers\ncloud inf 1", "a.txt:3: expected a number as target, got 'inf'"},
      {"features", "a.txt:1: expected 1 to 256 names of features, got 0"},
      {"features H H", "a.txt:1: a second feature 'H'"}};
  for (const auto& [text, message] : wrong)
    EXPECT_EQ(message_of<std::runtime_error>([t = text] { parse_cloud_text(t, "a.txt"); }),
              message);
  const WrongText wrong_clouds[] = {
      {"cloud a", "a.txt:3: expected 'cloud TARGET POINTS'"},
      {"cloud a 0", "a.txt:3: expected 1 or more points, got '0'"},
      {"cloud a 1.5", "a.txt:3: expected 1 or more points, got '1.5'"},
      {"cloud \xff 1", "a.txt:3: the name of the class '\\xFF' is not UTF-8"},
      {"cloud a 2\n1 2\n", "a.txt:3: expected 2 points, the file ends after 1"},
      {"cloud a 99999999999\n1 2\n", "a.txt:3: expected 99999999999 points, the file ends after 1"},
      {"cloud a 2\n1 2\ncloud b 1\n", "a.txt:5: expected 2 points for the cloud of line 3, got 1"},
      {"cloud a 1\n1 2 3\n", "a.txt:4: expected 2 numbers (2 of a position, 0 features), got 3"},
      {"cloud a 1\n1 2\n3 4\n", "a.txt:5: expected axes, targets, features or cloud, got '3'"},
      {"cloud a 1\n1 x\n", "a.txt:4: expected a number of float32, got 'x'"},
      {"cloud a 1\n1 nan\n", "a.txt:4: expected a number of float32, got 'nan'"},
      {"cloud a 1\n1 1e39\n", "a.txt:4: expected a number of float32, got '1e39'"},
      {"cloud a 1\n1 2\nfeatures H\n", "a.txt:5: expected 'features' before the first cloud"}};
  for (const auto& [text, message] : wrong_clouds)
    EXPECT_EQ(message_of<std::runtime_error>(
                  [whole = classes + text] { parse_cloud_text(whole, "a.txt"); }),
              message);
}

}  // namespace
}  // namespace translution
