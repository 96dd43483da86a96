#include "translution/io/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "translution/core/error.h"
#include "translution/io/write_fault.h"

namespace translution::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kOld = "what was there";
constexpr const char* kNew = "what comes instead, somewhat longer";

// A directory with one file, and no fault before and after.
struct AtomicFileTest : ::testing::Test {
  AtomicFileTest() { put_bytes(path, kOld); }
  ~AtomicFileTest() override { set_write_fault({}); }

  // The calls of one write without a fault.
  int64_t count_calls() const {
    set_write_fault({});
    write_file_atomically(path, kNew);
    put_bytes(path, kOld);
    return count_disk_calls();
  }

  TempDir dir;
  const std::string path = dir / "file";
};

TEST_F(AtomicFileTest, ReplacesTheFileAndLeavesNothingElse) {
  write_file_atomically(path, kNew);
  write_file_atomically(dir / "empty", "");
  EXPECT_EQ(get_bytes(path), kNew);
  EXPECT_EQ(get_bytes(dir / "empty"), "");
  EXPECT_THAT(names_in(dir.path()), ElementsAre("empty", "file"));
}

TEST_F(AtomicFileTest, JoinsPiecesAndNothingRemainsWithoutCommit) {
  {
    AtomicFile file(path);
    file.write("one ");
    file.write("");
    file.write(std::string("tw\0", 3));
    EXPECT_EQ(get_bytes(path), kOld);
    file.commit();
    AtomicFile(path).write("never");
  }
  EXPECT_EQ(get_bytes(path), std::string("one tw\0", 7));
  EXPECT_THAT(names_in(dir.path()), ElementsAre("file"));
}

TEST_F(AtomicFileTest, LackOfSpaceAtAnyCallLeavesTheOldFileOrTheNew) {
  const int64_t calls = count_calls();
  EXPECT_EQ(calls, 5);  // create, write, sync, rename, sync of the directory
  for (const Fault kind : {Fault::enospc, Fault::torn})
    for (int64_t call = 1; call <= calls; ++call) {
      put_bytes(path, kOld);
      set_write_fault({kind, call});
      const auto message = message_of([&] { write_file_atomically(path, kNew); });
      EXPECT_THAT(message, HasSubstr("No space left on device; free some space")) << call;
      EXPECT_EQ(get_bytes(path), call < calls ? kOld : kNew) << call;
      EXPECT_THAT(names_in(dir.path()), ElementsAre("file")) << call;
    }
}

TEST_F(AtomicFileTest, SaysPathReasonAndWhatToDo) {
  set_write_fault({Fault::enospc, 2});
  EXPECT_EQ(message_of([&] { write_file_atomically(path, kNew); }),
            path +
                ": cannot be written: No space left on device; free some space; the previous "
                "file is untouched");
  EXPECT_EQ(message_of([&] { write_file_atomically(dir / "no/file", kNew); }),
            dir.path() +
                "/no/file: cannot be written: No such file or directory; make the "
                "directory first");
  EXPECT_EQ(message_of<std::invalid_argument>([&] { write_file_atomically("a/", ""); }),
            "a/: wanted the path of a file");
}

TEST_F(AtomicFileTest, GoesOnAfterAWriteCutShortAndAfterASignal) {
  const int64_t calls = count_calls();
  for (const Fault kind : {Fault::cut, Fault::interrupt})
    for (int64_t call = 1; call <= calls; ++call) {
      put_bytes(path, kOld);
      set_write_fault({kind, call});
      write_file_atomically(path, kNew);
      EXPECT_EQ(get_bytes(path), kNew) << call;
    }
}

TEST_F(AtomicFileTest, AKillAtAnyCallLeavesTheOldFileOrTheNew) {
  const int64_t calls = count_calls();
  for (int64_t call = 1; call <= calls; ++call) {
    put_bytes(path, kOld);
    EXPECT_EQ(in_child([&] {
                set_write_fault({Fault::kill, call});
                write_file_atomically(path, kNew);
              }),
              -SIGKILL);
    EXPECT_EQ(get_bytes(path), call < calls ? kOld : kNew) << call;
  }
}

TEST(WriteFault, IsReadFromText) {
  const auto fault = WriteFault::parse("torn:12");
  EXPECT_EQ(fault.kind, Fault::torn);
  EXPECT_EQ(fault.call, 12);
  for (const char* text :
       {"", "kill", "kill:", ":", "kill:x", "kill:-1", "kill:9999999999", "k:1:2"})
    EXPECT_THROW(WriteFault::parse(text), std::invalid_argument) << text;
  EXPECT_EQ(message_of<std::invalid_argument>([] { WriteFault::parse("enospace:7"); }),
            "unknown fault 'enospace'; did you mean 'enospc'?");
}

// Runs itself once more with the variable set, since it is read once in a process.
TEST(WriteFault, ComesFromTheEnvironment) {
  if (std::getenv("TRANSLUTION_WRITE_FAULT") != nullptr) {
    const TempDir dir;
    write_file_atomically(dir / "first", "x");
    EXPECT_THROW(write_file_atomically(dir / "second", "x"), std::runtime_error);
    return;
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string rest = " " + self + " --gtest_filter=WriteFault.ComesFromTheEnvironment";
  int code = 0;
  output_of_command("TRANSLUTION_WRITE_FAULT=enospc:7" + rest, &code);
  EXPECT_EQ(code, 0);
  output_of_command("TRANSLUTION_WRITE_FAULT=enospc:11" + rest, &code);
  EXPECT_EQ(code, 1) << "the second file needs calls 6 to 10";
}

}  // namespace
}  // namespace translution::testing
