#include "translution/io/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <csignal>
#include <thread>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_fault.h"
#include "translution/core/error.h"

namespace translution::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kOld = "old contents";
constexpr const char* kNew = "new contents, somewhat longer";

// A directory with one file; no write fault is set before and after each test.
struct AtomicFileTest : ::testing::Test {
  AtomicFileTest() { put_bytes(path, kOld); }
  ~AtomicFileTest() override { set_write_fault({}); }

  // Disk calls of one write without a fault.
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

TEST_F(AtomicFileTest, ConcatenatesWritesAndLeavesNothingWithoutCommit) {
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
                "/no/file: cannot be written: No such file or directory; create the "
                "directory first");
  EXPECT_EQ(message_of<std::invalid_argument>([&] { write_file_atomically("a/", ""); }),
            "a/: expected the path of a file");
  EXPECT_EQ(message_of<std::invalid_argument>([&] { write_file_atomically("", ""); }),
            "expected the path of a file, got ''");
  EXPECT_EQ(message_of([&] { write_file_atomically(dir.path(), ""); }),
            dir.path() + ": is a directory; name a file in it");
}

TEST_F(AtomicFileTest, FollowsLinksIncludingDanglingOnes) {
  fs::create_directory(dir / "deep");
  fs::create_symlink("file", dir / "near");
  fs::create_symlink("../near", dir / "deep/chain");
  fs::create_symlink(dir / "deep/new", dir / "dangling");
  write_file_atomically(dir / "deep/chain", kNew);
  write_file_atomically(dir / "dangling", kNew);
  EXPECT_EQ(get_bytes(path), kNew);
  EXPECT_EQ(get_bytes(dir / "deep/new"), kNew);
  for (const char* link : {"near", "deep/chain", "dangling"})
    EXPECT_TRUE(fs::is_symlink(dir / link)) << link;
  EXPECT_THAT(names_in(dir.path()), ElementsAre("dangling", "deep", "file", "near"));
  EXPECT_THAT(names_in(dir / "deep"), ElementsAre("chain", "new"));
  fs::create_symlink("circle", dir / "circle");
  EXPECT_THAT(message_of([&] { write_file_atomically(dir / "circle", kNew); }),
              HasSubstr("/circle: has more than 40 symbolic links to follow"));
}

TEST_F(AtomicFileTest, PreservesTheModeOfTheReplacedFile) {
  for (const auto mode : {fs::perms(0600), fs::perms(0751), fs::perms(0444)}) {
    fs::permissions(path, mode);
    write_file_atomically(path, kNew);
    EXPECT_EQ(fs::status(path).permissions(), mode);
  }
}

TEST_F(AtomicFileTest, WritesThroughAPipe) {
  const std::string pipe = dir / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = get_bytes(pipe); });
  write_file_atomically(pipe, kNew);
  reader.join();
  EXPECT_EQ(read, kNew);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_THAT(names_in(dir.path()), ElementsAre("file", "pipe"));
}

TEST_F(AtomicFileTest, WritesThroughADevice) {
  const std::string null = dir / "null", full = dir / "full";  // not those in /dev
  if (mknod(null.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0 ||
      mknod(full.c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0 || !std::ofstream(null))
    GTEST_SKIP() << "creating devices needs root and a file system that allows them";
  write_file_atomically(null, kNew);
  EXPECT_EQ(message_of([&] { write_file_atomically(full, kNew); }),
            full + ": cannot be written: No space left on device; free some space");
  for (const auto& device : {null, full}) EXPECT_TRUE(fs::is_character_file(device));
  EXPECT_THAT(names_in(dir.path()), ElementsAre("file", "full", "null"));
}

TEST_F(AtomicFileTest, ContinuesAfterAPartialWriteAndAfterASignal) {
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

TEST(WriteFault, IsParsedFromText) {
  const auto fault = WriteFault::parse("torn:12");
  EXPECT_EQ(fault.kind, Fault::torn);
  EXPECT_EQ(fault.call, 12);
  for (const char* text :
       {"", "kill", "kill:", ":", "kill:x", "kill:-1", "kill:9999999999", "k:1:2"})
    EXPECT_THROW(WriteFault::parse(text), std::invalid_argument) << text;
  EXPECT_EQ(message_of<std::invalid_argument>([] { WriteFault::parse("enospace:7"); }),
            "unknown fault 'enospace'; did you mean 'enospc'?");
}

// Runs this test program again with the variable set, since a process reads it only once.
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
