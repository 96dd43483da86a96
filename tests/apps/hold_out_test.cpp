// `--hold-out`: part of the training set chooses the best checkpoint.

#include <gmock/gmock.h>

#include <set>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "translution/train/metrics.h"

namespace translution {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class HoldOut : public SmallRun {
 protected:
  Outcome train(const std::string& name, const std::string& more) const {
    return run(
        "train --data digits:64 --batch 16 --steps 4 --model vit-tiny/14 "
        "--eval-limit 8 --threads 1 --out " +
        path(name) + " " + more);
  }
  std::set<std::string> sets_in_log(const std::string& name) const {
    std::set<std::string> sets;
    for (const auto& moment : read_metrics(path(name) + "/metrics.jsonl"))
      if (moment.split != "train") sets.insert(moment.split);
    return sets;
  }
};

TEST_F(HoldOut, EvaluatesTheHeldOutSamplesBesideTheTestSet) {
  ASSERT_EQ(train("both", "--canvas 28 --hold-out 20").code, 0);
  EXPECT_THAT(sets_in_log("both"), ElementsAre("held_out", "static"));
  const auto outcome = run("eval " + path("both"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("held_out"));
}

TEST_F(HoldOut, LeavesTheTestSetAloneWithEvalOnNone) {
  ASSERT_EQ(train("none", "--canvas 42 --hold-out 20 --eval-on none").code, 0);
  EXPECT_THAT(sets_in_log("none"), ElementsAre("held_out"));
}

TEST_F(HoldOut, StaysTheSameOnResume) {
  ASSERT_EQ(train("resumed", "--canvas 28 --hold-out 20").code, 0);
  const auto outcome = train("resumed", "--canvas 28 --hold-out 10 --resume auto");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("hold-out"));
}

}  // namespace
}  // namespace translution
