// Whatever stops a save at whichever system call, no checkpoint there was is lost or changed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/support/process.h"
#include "tests/support/write_fault.h"
#include "tests/train/checkpoint_cases.h"
#include "translution/train/checkpoint_store.h"

namespace translution::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A store with steps 1 and 2, of which 1 is the best; step 3 is the save that is disturbed.
struct DisturbedSave {
  explicit DisturbedSave(int64_t keep) : keep_last(keep) {
    set_write_fault({});
    CheckpointStore store(dir.path(), keep_last);
    for (const int64_t step : {1, 2}) store.save(step, content_of(step), step == 1);
    before = snapshot(dir / "step-00000002");
  }
  ~DisturbedSave() { set_write_fault({}); }

  void save(int64_t step) const {
    CheckpointStore(dir.path(), keep_last).save(step, content_of(step), /*is_best=*/true);
  }

  // Of opening the store and saving step 3.
  static int64_t count_calls(int64_t keep) {
    const DisturbedSave undisturbed(keep);
    set_write_fault({});
    undisturbed.save(3);
    return count_disk_calls();
  }

  // Step 3 is there and whole, or step 2 is as it was.
  void expect_nothing_lost() const {
    const auto newest = newest_whole(dir.path());
    ASSERT_TRUE(newest.checkpoint);
    EXPECT_TRUE(newest.skipped.empty()) << newest.skipped[0];
    expect_content_of(newest.checkpoint->step, *newest.checkpoint);
    EXPECT_GE(newest.checkpoint->step, 2);
    const bool removed = newest.checkpoint->step > 2 && keep_last == 1;
    EXPECT_TRUE(removed || snapshot(dir / "step-00000002") == before);
    for (const int64_t step : list_steps(dir.path()))
      expect_content_of(step, load_checkpoint(dir / checkpoint_name(step)));
    const auto linked = load_checkpoint(dir.path());
    expect_content_of(linked.step, linked);
    const auto best = load_checkpoint(dir / "best");
    expect_content_of(best.step, best);
  }

  void expect_the_next_save_works() const {
    set_write_fault({});
    save(4);
    expect_content_of(4, load_checkpoint(dir.path()));
    expect_content_of(4, load_checkpoint(dir / "best"));
    for (const auto& name : names_in(dir.path())) EXPECT_THAT(name, Not(HasSubstr(".tmp-")));
  }

  TempDir dir;
  const int64_t keep_last;
  std::map<std::string, std::string> before;
};

struct CheckpointFault : ::testing::TestWithParam<int64_t> {};

TEST_P(CheckpointFault, LackOfSpaceAtAnyCallLosesNothing) {
  const int64_t calls = DisturbedSave::count_calls(GetParam());
  EXPECT_GT(calls, 25);
  int64_t failures = 0;
  for (const Fault kind : {Fault::enospc, Fault::torn})
    for (int64_t call = 1; call <= calls; ++call) {
      SCOPED_TRACE(name_of(kFaults, kind) + std::string(" at call ") + std::to_string(call));
      const DisturbedSave disturbed(GetParam());
      set_write_fault({kind, call});
      const auto message = message_of([&] { disturbed.save(3); });
      if (!message.empty()) {
        EXPECT_THAT(message,
                    HasSubstr("saving the checkpoint of step 3 failed; earlier checkpoints"));
        EXPECT_THAT(message, HasSubstr("No space left on device; free some space"));
        ++failures;
      }
      disturbed.expect_nothing_lost();
      disturbed.expect_the_next_save_works();
    }
  EXPECT_GT(failures, calls);  // only what removes old ones is no reason to fail
}

TEST_P(CheckpointFault, WritesCutShortAndSignalsDoNotDisturb) {
  const int64_t calls = DisturbedSave::count_calls(GetParam());
  for (const Fault kind : {Fault::cut, Fault::interrupt})
    for (int64_t call = 1; call <= calls; ++call) {
      const DisturbedSave disturbed(GetParam());
      set_write_fault({kind, call});
      disturbed.save(3);
      expect_content_of(3, load_checkpoint(disturbed.dir.path()));
    }
}

TEST_P(CheckpointFault, AKillAtAnyCallLosesNothing) {
  const int64_t calls = DisturbedSave::count_calls(GetParam());
  for (int64_t call = 1; call <= calls; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    const DisturbedSave disturbed(GetParam());
    const auto killed_at = [&](int64_t n) {
      return in_child([&] {
        set_write_fault({Fault::kill, n});
        disturbed.save(3);
      });
    };
    EXPECT_EQ(killed_at(call), -SIGKILL);
    disturbed.expect_nothing_lost();
    killed_at(1 + call % 5);  // while it clears away what the first one left
    disturbed.expect_nothing_lost();
    disturbed.expect_the_next_save_works();
  }
}

TEST_P(CheckpointFault, AKillWhileAStepIsReplacedLosesNothing) {
  const int64_t calls = DisturbedSave::count_calls(GetParam());
  for (int64_t call = 1; call <= calls; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    const DisturbedSave disturbed(GetParam());
    in_child([&] {
      set_write_fault({Fault::kill, call});
      disturbed.save(2);
    });
    const auto newest = newest_whole(disturbed.dir.path());
    ASSERT_TRUE(newest.checkpoint);
    expect_content_of(2, *newest.checkpoint);
    EXPECT_TRUE(newest.skipped.empty());
    disturbed.expect_the_next_save_works();
  }
}

INSTANTIATE_TEST_SUITE_P(KeepLast, CheckpointFault, ::testing::Values(1, 3));

TEST(CheckpointFault, TheMessageNamesFileReasonAndWhatToDo) {
  const DisturbedSave disturbed(3);
  set_write_fault({Fault::enospc, 3});
  const auto message = message_of([&] { disturbed.save(3); });
  EXPECT_THAT(message,
              HasSubstr("saving the checkpoint of step 3 failed; earlier checkpoints are intact: " +
                        disturbed.dir.path()));
  EXPECT_THAT(message, HasSubstr("/model.safetensors: cannot be written: No space left on device; "
                                 "free some space"));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

TEST(CheckpointFault, AKillBetweenCheckpointAndLinksIsMadeGoodWhenOpened) {
  const int64_t calls = DisturbedSave::count_calls(3);
  int64_t behind = 0;
  for (int64_t call = 1; call <= calls; ++call) {
    const DisturbedSave disturbed(3);
    in_child([&] {
      set_write_fault({Fault::kill, call});
      disturbed.save(3);
    });
    if (newest_whole(disturbed.dir.path()).checkpoint->step < 3) continue;
    behind += load_checkpoint(disturbed.dir / "best").step != 3;
    const CheckpointStore opened(disturbed.dir.path());
    EXPECT_EQ(load_checkpoint(disturbed.dir / "last").step, 3);
    EXPECT_EQ(load_checkpoint(disturbed.dir / "best").step, 3);
  }
  EXPECT_GT(behind, 3);
}

}  // namespace
}  // namespace translution::testing
