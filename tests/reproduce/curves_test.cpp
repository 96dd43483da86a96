#include "apps/translution/reproduce/curves.h"

#include <gmock/gmock.h>

#include "tests/support/temp_dir.h"
#include "translution/train/metrics_log.h"

namespace translution::testing {

using namespace cli;

namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Curves, AreTheLogWithoutSpeeds) {
  const TempDir directory;
  {
    MetricsLog log(directory.path());
    log.add({20, 0.25, "train", {{"loss", 2.5}, {"samples_per_s", 50.0}}});
    log.add({80, 1, "static", {{"loss", 1.0 / 3}, {"top1", 0.125}}});
  }
  write_curves(directory.path(), directory / "curves.csv");
  EXPECT_EQ(get_bytes(directory / "curves.csv"),
            "step,epoch,split,name,value\n20,0.25,train,loss,2.5\n"
            "80,1,static,loss,0.3333333333333333\n80,1,static,top1,0.125\n");
  const auto curves = read_curves(directory / "curves.csv");
  ASSERT_EQ(curves.size(), 3);
  EXPECT_EQ(curves[1].step, 80);
  EXPECT_EQ(curves[1].epoch, 1);
  EXPECT_EQ(curves[1].split, "static");
  EXPECT_EQ(curves[1].values.front(), (std::pair<std::string, double>("loss", 1.0 / 3)));
}

TEST(Curves, RefuseOtherFilesWithPathAndLine) {
  const TempDir directory;
  const std::string path = directory / "curves.csv";
  const auto expect_refused = [&](const std::string& text, const std::string& message) {
    put_bytes(path, text);
    EXPECT_THAT([&] { read_curves(path); }, ThrowsMessage<std::exception>(HasSubstr(message)));
  };
  expect_refused("", path + ": expected step,epoch,split,name,value in the first line, got ''");
  expect_refused("step,epoch,split,name,value\n1,2,train,loss\n",
                 path + ":2: expected step,epoch,split,name,value, got '1,2,train,loss'");
  expect_refused("step,epoch,split,name,value\n1,2,train,loss,3\none,2,train,loss,3\n",
                 path + ":3: expected a whole number, got 'one'");
}

}  // namespace
}  // namespace translution::testing
