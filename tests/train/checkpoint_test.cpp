#include "translution/train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/train/checkpoint_cases.h"
#include "translution/core/error.h"
#include "translution/io/disk.h"
#include "translution/train/checkpoint_store.h"
#include "translution/train/model_file.h"

namespace translution::testing {

using namespace detail;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string target(const std::string& link) { return std::filesystem::read_symlink(link); }

TEST(Checkpoint, LoadsWhatWasSaved) {
  const TempDir dir;
  CheckpointStore(dir / "run/checkpoints").save(12, content_of(12), /*is_best=*/true);
  const auto checkpoint = load_checkpoint(dir / "run/checkpoints/step-00000012");
  expect_content_of(12, checkpoint);
  EXPECT_TRUE(checkpoint.best);
  EXPECT_EQ(checkpoint.path, dir / "run/checkpoints/step-00000012");
  EXPECT_THAT(names_in(checkpoint.path),
              ElementsAre("manifest.json", "model.safetensors", "optimizer.safetensors"));
}

TEST(Checkpoint, IsFoundByDirectoryLinkStoreOrRun) {
  const TempDir dir;
  CheckpointStore store(dir / "checkpoints");
  store.save(1, content_of(1), true);
  store.save(2, content_of(2), false);
  for (const char* path : {"", "checkpoints", "checkpoints/last", "checkpoints/step-00000002"}) {
    expect_content_of(2, load_checkpoint(dir / path));
    expect_same_tensors(load_model(dir / path), content_of(2).model);
    EXPECT_EQ(load_manifest(dir / path).step, 2);
  }
  expect_content_of(1, load_checkpoint(dir / "checkpoints/best"));
  expect_same_tensors(load_model(dir / "checkpoints/last/model.safetensors"), content_of(2).model);
}

TEST(Checkpoint, NamesWhatIsMissing) {
  const TempDir dir;
  EXPECT_EQ(
      message_of([&] { load_checkpoint(dir.path()); }),
      dir.path() + ": has no manifest.json; expected a checkpoint, or a run with checkpoints/last");
  EXPECT_EQ(message_of([&] { load_model(dir / "none"); }),
            dir / "none" + ": cannot be opened: No such file or directory");
  std::filesystem::create_symlink("step-00000009", dir / "last");
  EXPECT_THAT(message_of([&] { load_model(dir.path()); }),
              HasSubstr("step-00000009/manifest.json: cannot be opened"));
  for (const char* path : {"", "none"}) {
    const auto newest = newest_whole(dir / path);
    EXPECT_FALSE(newest.checkpoint);
    EXPECT_TRUE(newest.skipped.empty());
  }
}

TEST(Checkpoint, DoesNotReferToTheFileOrTheTensorsOfTheCaller) {
  const TempDir dir;
  CheckpointStore store(dir.path());
  auto content = content_of(5);
  store.save(5, content, false);
  content.model.begin()->second.zero_();
  const auto loaded = load_checkpoint(dir.path());
  std::filesystem::remove_all(dir / "step-00000005");
  expect_content_of(5, loaded);
}

TEST(CheckpointStore, KeepsTheNewestAndTheBest) {
  const TempDir dir;
  CheckpointStore store(dir.path(), /*keep_last=*/2);
  for (int64_t step = 10; step <= 60; step += 10) store.save(step, content_of(step), step == 20);
  EXPECT_THAT(list_steps(dir.path()), ElementsAre(60, 50, 20));
  EXPECT_EQ(target(dir / "last"), "step-00000060");
  EXPECT_EQ(target(dir / "best"), "step-00000020");
  store.save(70, content_of(70), true);
  EXPECT_THAT(names_in(dir.path()),
              ElementsAre(".lock", ".saved", "best", "last", "step-00000060", "step-00000070"));
  EXPECT_EQ(target(dir / "best"), "step-00000070");
}

TEST(CheckpointStore, KeepsHigherStepsAndReplacesTheSameStep) {
  const TempDir dir;
  CheckpointStore store(dir.path(), /*keep_last=*/1);
  store.save(300, content_of(300), false);
  store.save(100, content_of(100), false);
  EXPECT_THAT(list_steps(dir.path()), ElementsAre(300, 100));
  EXPECT_EQ(target(dir / "last"), "step-00000100");
  store.save(300, content_of(7), false);
  EXPECT_THAT(list_steps(dir.path()), ElementsAre(300));
  EXPECT_TRUE(
      torch::equal(load_model(dir.path()).at("head.bias"), content_of(7).model.at("head.bias")));
}

TEST(CheckpointStore, OrdersStepsByNumberNotByName) {
  const TempDir dir;
  CheckpointStore store(dir.path(), /*keep_last=*/2);
  for (const int64_t step : {0, 99'999'999, 100'000'000}) store.save(step, content_of(step), false);
  EXPECT_THAT(list_steps(dir.path()), ElementsAre(100'000'000, 99'999'999));
  for (const char* name : {"step-5", "step-000000051", "step-0000000x", "step--0000001", "other"})
    std::filesystem::create_directory(dir / name);
  EXPECT_THAT(list_steps(dir.path()), ElementsAre(100'000'000, 99'999'999));
}

TEST(CheckpointStore, RefusesASecondProcessAndNamesTheFirst) {
  const TempDir dir;
  const CheckpointStore store(dir.path());
  EXPECT_EQ(message_of([&] { CheckpointStore again(dir.path()); }),
            join(dir.path(), ": is in use by process ", getpid(),
                 "; wait until it ends, or choose another directory"));
}

TEST(CheckpointStore, RefusesInvalidArguments) {
  const TempDir dir;
  EXPECT_THROW(CheckpointStore(dir.path(), 0), std::invalid_argument);
  CheckpointStore store(dir.path());
  EXPECT_THROW(store.save(-1, content_of(1), false), std::invalid_argument);
  auto content = content_of(1);
  content.state["loss"] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(message_of<std::invalid_argument>([&] { store.save(1, content, false); }),
            "manifest: expected finite numbers in the state");
  EXPECT_THAT(names_in(dir.path()), ElementsAre(".lock"));
}

TEST(CheckpointStore, RemovesTemporariesAndRepairsLinksWhenOpened) {
  const TempDir dir;
  {
    CheckpointStore store(dir.path());
    store.save(1, content_of(1), false);
    store.save(2, content_of(2), true);
  }
  for (const char* link : {"last", "best"}) {
    std::filesystem::remove(dir / link);
    std::filesystem::create_symlink("step-00000001", dir / link);
  }
  std::filesystem::create_directories(dir / ".tmp-1-0/below");
  put_bytes(dir / ".tmp-1-0/below/file", "x");
  std::filesystem::create_symlink("step-00000001", dir / ".tmp-1-1");
  const CheckpointStore store(dir.path());
  EXPECT_THAT(names_in(dir.path()),
              ElementsAre(".lock", ".saved", "best", "last", "step-00000001", "step-00000002"));
  EXPECT_EQ(target(dir / "last"), "step-00000002");
  EXPECT_EQ(target(dir / "best"), "step-00000002");
}

TEST(Disk, RemovingALinkDoesNotRemoveItsTarget) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "kept");
  put_bytes(dir / "kept/file", "x");
  std::filesystem::create_directory(dir / "gone");
  std::filesystem::create_symlink("../kept", dir / "gone/link");
  disk::remove(dir / "gone");
  EXPECT_THAT(names_in(dir.path()), ElementsAre("kept"));
  EXPECT_EQ(get_bytes(dir / "kept/file"), "x");
}

}  // namespace
}  // namespace translution::testing
