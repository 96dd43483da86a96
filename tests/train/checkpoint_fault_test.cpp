// A save that fails or is killed at any system call loses or changes no existing checkpoint.

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

// A store with steps 1 (the best) and 2. The tests interrupt the save of step 3.
struct InterruptedSave {
  explicit InterruptedSave(int64_t keep) : keep_last(keep) {
    set_write_fault({});
    CheckpointStore store(dir.path(), keep_last);
    for (const int64_t step : {1, 2}) store.save(step, content_of(step), step == 1);
    before = snapshot(dir / "step-00000002");
  }
  ~InterruptedSave() { set_write_fault({}); }

  void save(int64_t step) const {
    CheckpointStore(dir.path(), keep_last).save(step, content_of(step), /*is_best=*/true);
  }

  // The number of disk calls to open the store and save step 3.
  static int64_t count_calls(int64_t keep) {
    const InterruptedSave uninterrupted(keep);
    set_write_fault({});
    uninterrupted.save(3);
    return count_disk_calls();
  }

  // Step 3 is complete, or step 2 is unchanged.
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
  const int64_t calls = InterruptedSave::count_calls(GetParam());
  EXPECT_GT(calls, 25);
  int64_t failures = 0;
  for (const Fault kind : {Fault::enospc, Fault::torn})
    for (int64_t call = 1; call <= calls; ++call) {
      SCOPED_TRACE(name_of(kFaults, kind) + std::string(" at call ") + std::to_string(call));
      const InterruptedSave interrupted(GetParam());
      set_write_fault({kind, call});
      const auto message = message_of([&] { interrupted.save(3); });
      if (!message.empty()) {
        EXPECT_THAT(message,
                    HasSubstr("saving the checkpoint of step 3 failed; earlier checkpoints"));
        EXPECT_THAT(message, HasSubstr("No space left on device; free some space"));
        ++failures;
      }
      interrupted.expect_nothing_lost();
      interrupted.expect_the_next_save_works();
    }
  EXPECT_GT(failures, calls);  // a save tolerates errors only in removing old checkpoints
}

TEST_P(CheckpointFault, PartialWritesAndSignalsDoNotInterruptASave) {
  const int64_t calls = InterruptedSave::count_calls(GetParam());
  for (const Fault kind : {Fault::cut, Fault::interrupt})
    for (int64_t call = 1; call <= calls; ++call) {
      const InterruptedSave interrupted(GetParam());
      set_write_fault({kind, call});
      interrupted.save(3);
      expect_content_of(3, load_checkpoint(interrupted.dir.path()));
    }
}

TEST_P(CheckpointFault, AKillAtAnyCallLosesNothing) {
  const int64_t calls = InterruptedSave::count_calls(GetParam());
  for (int64_t call = 1; call <= calls; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    const InterruptedSave interrupted(GetParam());
    const auto killed_at = [&](int64_t n) {
      return in_child([&] {
        set_write_fault({Fault::kill, n});
        interrupted.save(3);
      });
    };
    EXPECT_EQ(killed_at(call), -SIGKILL);
    interrupted.expect_nothing_lost();
    killed_at(1 + call % 5);  // while it removes the temporary files of the first kill
    interrupted.expect_nothing_lost();
    interrupted.expect_the_next_save_works();
  }
}

TEST_P(CheckpointFault, AKillWhileReplacingAStepLosesNothing) {
  const int64_t calls = InterruptedSave::count_calls(GetParam());
  for (int64_t call = 1; call <= calls; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    const InterruptedSave interrupted(GetParam());
    in_child([&] {
      set_write_fault({Fault::kill, call});
      interrupted.save(2);
    });
    const auto newest = newest_whole(interrupted.dir.path());
    ASSERT_TRUE(newest.checkpoint);
    expect_content_of(2, *newest.checkpoint);
    EXPECT_TRUE(newest.skipped.empty());
    interrupted.expect_the_next_save_works();
  }
}

INSTANTIATE_TEST_SUITE_P(KeepLast, CheckpointFault, ::testing::Values(1, 3));

TEST(CheckpointFault, MessageHasFileReasonAndAdvice) {
  const InterruptedSave interrupted(3);
  set_write_fault({Fault::enospc, 3});
  const auto message = message_of([&] { interrupted.save(3); });
  EXPECT_THAT(message,
              HasSubstr("saving the checkpoint of step 3 failed; earlier checkpoints are intact: " +
                        interrupted.dir.path()));
  EXPECT_THAT(message, HasSubstr("/model.safetensors: cannot be written: No space left on device; "
                                 "free some space"));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

TEST(CheckpointFault, LinksAreRepairedAfterAKillBeforeTheirUpdate) {
  const int64_t calls = InterruptedSave::count_calls(3);
  int64_t outdated = 0;
  for (int64_t call = 1; call <= calls; ++call) {
    const InterruptedSave interrupted(3);
    in_child([&] {
      set_write_fault({Fault::kill, call});
      interrupted.save(3);
    });
    if (newest_whole(interrupted.dir.path()).checkpoint->step < 3) continue;
    outdated += load_checkpoint(interrupted.dir / "best").step != 3;
    const CheckpointStore opened(interrupted.dir.path());
    EXPECT_EQ(load_checkpoint(interrupted.dir / "last").step, 3);
    EXPECT_EQ(load_checkpoint(interrupted.dir / "best").step, 3);
  }
  EXPECT_GT(outdated, 3);
}

}  // namespace
}  // namespace translution::testing
