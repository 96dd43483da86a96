#include "translution/io/lock.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "translution/core/error.h"

namespace translution::testing {

using namespace detail;

namespace {

TEST(DirectoryLock, NamesTheProcessThatHoldsIt) {
  const TempDir dir;
  const auto expected = join(dir.path(), ": is in use by process ", getpid(),
                             "; wait until it ends, or choose another directory");
  auto lock = std::make_unique<DirectoryLock>(dir.path());
  EXPECT_EQ(in_child([&] {
              if (message_of([&] { DirectoryLock(dir.path()); }) != expected) _exit(2);
            }),
            0);
  EXPECT_EQ(message_of([&] { DirectoryLock(dir.path()); }), expected);
  lock.reset();
  EXPECT_EQ(in_child([&] { DirectoryLock(dir.path()); }), 0);
}

TEST(DirectoryLock, IsReleasedWhenItsProcessIsKilled) {
  const TempDir dir;
  EXPECT_EQ(in_child([&] {
              const DirectoryLock lock(dir.path());
              raise(SIGKILL);
            }),
            -SIGKILL);
  EXPECT_NO_THROW(DirectoryLock(dir.path()));
}

TEST(DirectoryLock, RefusesAMissingDirectory) {
  const TempDir dir;
  EXPECT_EQ(message_of([&] { DirectoryLock(dir / "none"); }),
            dir.path() + "/none/.lock: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace translution::testing
