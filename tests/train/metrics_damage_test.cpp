#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"
#include "translution/train/metrics_log.h"

namespace translution::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLine = "{\"step\":1,\"epoch\":0.5,\"split\":\"train\",\"loss\":0.25}";

class DamagedLog : public ::testing::Test {
 protected:
  std::vector<Metrics> read(const std::string& content) {
    put_bytes(path_, content);
    return read_metrics(path_);
  }

  // The error message for this content.
  std::string refusal(const std::string& content) {
    try {
      read(content);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "was accepted";
  }

  const TempDir directory_;
  const std::string path_ = directory_ / "metrics.jsonl";
};

TEST_F(DamagedLog, CutAtAnyByteLosesOnlyTheLastLine) {
  const std::string lines = std::string(kLine) + "\n" + kLine + "\n" + kLine + "\n";
  const size_t length = std::string(kLine).size() + 1;
  for (size_t size = 0; size <= lines.size(); ++size)
    // A line is complete at its closing brace, without the line feed.
    EXPECT_EQ(read(lines.substr(0, size)).size(), (size + 1) / length) << size << " bytes";
}

TEST_F(DamagedLog, IsReportedWithTheLineNumber) {
  const std::string line = kLine, bad = "{\"step\":2,\"epoch\"";
  EXPECT_THAT(refusal(line + "\n" + bad + "\n" + line + "\n"),
              HasSubstr(path_ + ": line 2 is dam"));
  EXPECT_THAT(refusal(bad + "\n" + line + "\n"), HasSubstr("line 1 is damaged"));
  EXPECT_THAT(refusal(line + "\n\n" + line + "\n"), HasSubstr("line 2 is damaged"));
  EXPECT_EQ(read(line + "\n" + bad + "\n").size(), 1u);
}

TEST_F(DamagedLog, RefusesLinesThatAreNotEntries) {
  for (const std::string bad :
       {"[]", "1", "null", "{}", "{\"step\":1,\"epoch\":1}", "{\"epoch\":1,\"split\":\"a\"}",
        "{\"step\":1.5,\"epoch\":1,\"split\":\"a\"}", "{\"step\":-1,\"epoch\":1,\"split\":\"a\"}",
        "{\"step\":18446744073709551615,\"epoch\":1,\"split\":\"a\"}",
        "{\"step\":1,\"epoch\":\"nan\",\"split\":\"a\"}", "{\"step\":1,\"epoch\":1,\"split\":2}",
        "{\"step\":1,\"epoch\":1,\"split\":\"a\",\"x\":null}",
        "{\"step\":1,\"epoch\":1,\"split\":\"a\",\"x\":{}}",
        "{\"step\":1,\"epoch\":1,\"split\":\"a\",\"x\":\"12\"}",
        "{\"step\":1,\"epoch\":1,\"split\":\"a\",\"x\":1e999}",
        "{\"step\":1,\"epoch\":1,\"split\":\"\xff\"}"})
    EXPECT_THAT(refusal(bad + "\n" + kLine + "\n"), HasSubstr("line 1 is damaged")) << bad;
}

TEST_F(DamagedLog, WithAFlippedBitIsRefusedOrStillParses) {
  const std::string lines = std::string(kLine) + "\n" + kLine + "\n";
  for (size_t bit = 0; bit < 8 * lines.size(); ++bit) {
    std::string damaged = lines;
    damaged[bit / 8] ^= 1 << bit % 8;
    put_bytes(path_, damaged);
    try {
      EXPECT_LE(read_metrics(path_).size(), 3u);
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("is damaged"));
    }
  }
}

TEST_F(DamagedLog, WithDeeplyNestedOrVeryLongLinesIsRefused) {
  EXPECT_THAT(refusal(std::string(60000, '[') + "\n" + kLine), HasSubstr("line 1 is damaged"));
  EXPECT_THAT(refusal(std::string(1 << 22, '[') + "\n" + kLine), HasSubstr("line 1 is damaged"));
}

TEST_F(DamagedLog, DamagedInTheMiddleCannotBeResumed) {
  put_bytes(path_, "damaged\n" + std::string(kLine) + "\n");
  EXPECT_THROW(MetricsLog(directory_.path(), 1), std::runtime_error);
  EXPECT_EQ(get_bytes(path_), "damaged\n" + std::string(kLine) + "\n");
}

TEST_F(DamagedLog, ThatIsMissingOrADirectoryIsRefused) {
  EXPECT_THROW(read_metrics(directory_ / "missing"), std::runtime_error);
  EXPECT_THROW(read_metrics(directory_.path()), std::runtime_error);
}

}  // namespace
}  // namespace translution::testing
