// Output paths, and empty paths.

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

#include "tests/apps/program.h"
#include "tests/apps/small_run.h"
#include "translution/io/atomic_file.h"
#include "translution/io/file.h"

namespace translution {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Paths : public SmallRun {
 protected:
  // A call of each command that writes files, and the first file that it writes.
  struct Writing {
    std::string arguments, file;
  };
  std::vector<Writing> writing() const {
    write_file_atomically(path("book.txt"), std::string(600, 'a') + "\n" + std::string(90, 'b'));
    return {
        {"report " + undisturbed() + " --curves-only --out " + path("r.html"), path("r.html")},
        {"convert " + trained("mean", "--mixing mean") + " " + path("w.safetensors") +
             " --to authors",
         path("w.safetensors")},
        {"data text " + path("book.txt") + " --out " + path("tokens"), path("tokens/train.bin")},
        {"configs " + path("configs"), path("configs/mnist/01-vit-a-12-self_attention.toml")}};
  }
};

TEST_F(Paths, LinksAreFollowedAndModesPreserved) {
  for (const auto& [arguments, file] : writing()) {
    SCOPED_TRACE(arguments);
    const std::string real = path("real");
    write_file_atomically(real, "before");
    fs::permissions(real, fs::perms(0640));
    fs::create_directories(fs::path(file).parent_path());
    fs::create_symlink(real, file);
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(fs::is_symlink(file));
    EXPECT_NE(read_file(real), "before");
    EXPECT_EQ(fs::status(real).permissions(), fs::perms(0640));
  }
}

TEST_F(Paths, DevicesAndPipesAreWrittenTo) {
  for (const auto& [arguments, file] : writing()) {
    SCOPED_TRACE(arguments);
    fs::create_directories(fs::path(file).parent_path());
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    const auto read = run(arguments + " >/dev/null & cat " + file + "; wait");
    EXPECT_GT(read.out.size(), 100u);
    EXPECT_TRUE(fs::is_fifo(file));
    fs::remove(file);
    // A device node of our own, never one of the system.
    if (mknod(file.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0 || !std::ofstream(file)) continue;
    EXPECT_EQ(run(arguments).code, 0);
    EXPECT_TRUE(fs::is_character_file(file));
    fs::remove(file);
  }
}

TEST_F(Paths, EmptyOnesAreRefused) {
  const char* calls[] = {"train --out ''",       "train --out=",
                         "data text x --out ''", "configs ''",
                         "report x --out ''",    "convert x ''",
                         "predict '' x",         "results x y --pictures ''",
                         "generate x --data ''", "reproduce mnist --out x --runs ''"};
  for (const auto& call : calls) {
    const auto outcome = run(call, "-C " + path(""));
    EXPECT_EQ(outcome.code, 2) << call;
    EXPECT_THAT(outcome.err, HasSubstr("expected a value")) << call;
    EXPECT_THAT(outcome.err, HasSubstr("; is a shell variable not set?\n")) << call;
  }
  EXPECT_TRUE(fs::is_empty(path("")));
  expect_refused({"eval ''", "RUN: expected a value, got ''; is a shell variable not set?"});
}

}  // namespace
}  // namespace translution
