#include "apps/translution/serve/training_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace translution::serve {
namespace {

constexpr const char* kConfig = "[training]\nsteps = 40\nbatch = 8\n";

std::string entry(int step, const std::string& split, const std::string& values) {
  return "{\"step\":" + std::to_string(step) + ",\"epoch\":1,\"split\":\"" + split + "\"," +
         values + "}\n";
}

class Log : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.path() + "/" + name, std::ios::app) << text;
  }
  TrainingLog read() { return logs_.read(directory_.path()); }

  testing::TempDir directory_;
  TrainingLogs logs_;
};

TEST_F(Log, IsEmptyBeforeTheFirstEntry) {
  EXPECT_TRUE(read().series.empty());
  EXPECT_FALSE(read().running);
}

TEST_F(Log, TellsHowFarATrainingIs) {
  write("config.toml", kConfig);
  write("metrics.jsonl", entry(10, "train", "\"loss\":2.5,\"samples_per_s\":16,\"lr\":0.1"));
  auto log = read();
  EXPECT_EQ(log.step, 10);
  EXPECT_EQ(log.steps, 40);
  EXPECT_TRUE(log.running);
  EXPECT_DOUBLE_EQ(log.seconds_left, 30 * 8 / 16.0);
  ASSERT_EQ(log.series.size(), 1);
  write("metrics.jsonl", entry(40, "train", "\"loss\":1.5") + entry(40, "static", "\"top1\":0.25"));
  log = read();
  EXPECT_FALSE(log.running);  // finished
  ASSERT_EQ(log.series.size(), 2);
  EXPECT_THAT(log.series[0].points, ::testing::ElementsAre(std::pair(10, 2.5), std::pair(40, 1.5)));
  EXPECT_EQ(log.series[1].metric, "top1");
}

TEST_F(Log, ThinsLongCurvesAndKeepsTheLastPoint) {
  for (int step = 1; step <= 5000; ++step)
    write("metrics.jsonl", entry(step, "train", "\"loss\":" + std::to_string(step)));
  const auto log = read();
  EXPECT_LE(log.series[0].points.size(), 400u);
  EXPECT_EQ(log.series[0].points.back(), std::pair(int64_t{5000}, 5000.0));
}

TEST_F(Log, ALogThatWasNotWrittenForLongIsNotRunning) {
  namespace fs = std::filesystem;
  write("metrics.jsonl", entry(1, "train", "\"loss\":1"));
  EXPECT_TRUE(read().running);
  fs::last_write_time(directory_.path() + "/metrics.jsonl",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_FALSE(read().running);
}

}  // namespace
}  // namespace translution::serve
