#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/temp_dir.h"
#include "translution/train/metrics_log.h"

namespace translution::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Metrics training(int64_t step) {
  return {step, step / 7.0, "train", {{"loss", 2.0 / (step + 1)}, {"learning rate", 3e-4}}};
}

Metrics evaluation(int64_t step) { return {step, step / 7.0, "static", {{"top-1", 0.1 * step}}}; }

void log_steps(MetricsLog& log, int64_t first, int64_t last) {
  for (int64_t step = first; step <= last; ++step) {
    log.add(training(step));
    if (step % 5 == 0) log.add(evaluation(step));
  }
}

struct Files {
  explicit Files(const TempDir& directory) : jsonl(get_bytes(directory / "metrics.jsonl")) {
    write_metrics_csv(directory.path());
    csv = get_bytes(directory / "metrics.csv");
  }
  bool operator==(const Files& other) const { return jsonl == other.jsonl && csv == other.csv; }

  std::string jsonl, csv;
};

Files uninterrupted_log(int64_t last) {
  const TempDir directory;
  MetricsLog log(directory.path());
  log_steps(log, 0, last);
  return Files(directory);
}

TEST(MetricsLog, WritesOneObjectPerEntryAndOneCsvLinePerValue) {
  const TempDir directory;
  MetricsLog log(directory / "runs/one");
  log.add({12, 0.5, "train", {{"loss", 0.25}, {"top-1", 1}}});
  log.add({12, 0.5, "dynamic", {{"loss", -kInfinity}}});
  EXPECT_EQ(get_bytes(directory / "runs/one/metrics.jsonl"),
            "{\"step\":12,\"epoch\":0.5,\"split\":\"train\",\"loss\":0.25,\"top-1\":1.0}\n"
            "{\"step\":12,\"epoch\":0.5,\"split\":\"dynamic\",\"loss\":\"-inf\"}\n");
  write_metrics_csv(directory / "runs/one");
  EXPECT_EQ(get_bytes(directory / "runs/one/metrics.csv"),
            "step,epoch,split,name,value\n"
            "12,0.5,train,loss,0.25\n12,0.5,train,top-1,1\n12,0.5,dynamic,loss,-inf\n");
}

TEST(MetricsLog, ReadsBackTheSameBits) {
  const TempDir directory;
  MetricsLog log(directory.path());
  const Metrics written{
      int64_t{1} << 60,
      1.0 / 3,
      "val",
      {{"z", 0.1}, {"a", 5e-324}, {"m", -1e300}, {"i", kInfinity}, {"j", -kInfinity}, {"n", NAN}}};
  log.add(written);
  const auto read = read_metrics(directory / "metrics.jsonl");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].step, written.step);
  EXPECT_EQ(read[0].epoch, written.epoch);
  EXPECT_EQ(read[0].split, "val");
  ASSERT_EQ(read[0].values.size(), 6u);
  EXPECT_TRUE(std::isnan(read[0].values[5].second));
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(read[0].values[i], written.values[i]);
}

TEST(MetricsLog, RefusesInvalidEntries) {
  const TempDir directory;
  MetricsLog log(directory.path());
  for (const char* name : {"", "a,b", "a\nb", "\"", "\\", "step", "epoch", "split", "\xc3\xa9"})
    EXPECT_THROW(log.add({1, 0, "train", {{name, 1.0}}}), std::invalid_argument) << name;
  EXPECT_THROW(log.add({1, 0, "a,b", {{"loss", 1}}}), std::invalid_argument);
  EXPECT_THROW(log.add({-1, 0, "train", {{"loss", 1}}}), std::invalid_argument);
  EXPECT_THROW(log.add({1, NAN, "train", {{"loss", 1}}}), std::invalid_argument);
  EXPECT_THROW(log.add({1, 0, "train", {{"loss", 1}, {"loss", 2}}}), std::invalid_argument);
  EXPECT_EQ(get_bytes(directory / "metrics.jsonl"), "");
}

TEST(MetricsLog, OfAResumedRunEqualsThatOfAnUninterruptedOne) {
  const Files expected = uninterrupted_log(23);
  for (int64_t resumed_at = 0; resumed_at <= 17; ++resumed_at) {
    const TempDir directory;
    {
      MetricsLog log(directory.path());
      log_steps(log, 0, 17);
    }
    MetricsLog log(directory.path(), resumed_at);
    log_steps(log, resumed_at + 1, 23);
    EXPECT_TRUE(Files(directory) == expected) << "resumed at " << resumed_at;
  }
}

TEST(MetricsLog, TruncatesTheLogOfAKilledRun) {
  const Files expected = uninterrupted_log(6), longer = uninterrupted_log(9);
  for (size_t size = expected.jsonl.size(); size <= longer.jsonl.size(); ++size) {
    const TempDir directory;
    put_bytes(directory / "metrics.jsonl", longer.jsonl.substr(0, size));
    // A kill can leave the two files at different steps.
    put_bytes(directory / "metrics.csv", longer.csv.substr(0, size % longer.csv.size()));
    put_bytes(directory / "metrics.jsonl.new", "rest of an interrupted truncation");
    MetricsLog log(directory.path(), 6);
    EXPECT_TRUE(Files(directory) == expected) << size << " bytes";
  }
}

TEST(MetricsLog, OfANewRunReplacesTheOldOne) {
  const TempDir directory;
  {
    MetricsLog log(directory.path());
    log_steps(log, 0, 3);
  }
  put_bytes(directory / "metrics.jsonl", "damaged\nlines\n");
  MetricsLog log(directory.path());
  log_steps(log, 0, 5);
  EXPECT_TRUE(Files(directory) == uninterrupted_log(5));
  EXPECT_FALSE(std::filesystem::exists(directory / "metrics.jsonl.new"));
}

TEST(MetricsLog, NamesAPathThatCannotBeWritten) {
  const TempDir directory;
  put_bytes(directory / "file", "");
  try {
    MetricsLog log(directory / "file");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(directory / "file"), std::string::npos);
  }
}

}  // namespace
}  // namespace translution::testing
