// Damage to any file of a checkpoint is detected and reported, and an older checkpoint is used.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/train/checkpoint_cases.h"
#include "translution/io/checksum.h"
#include "translution/train/checkpoint.h"
#include "translution/train/checkpoint_store.h"
#include "translution/train/model_file.h"

namespace translution::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kFiles[] = {"manifest.json", "model.safetensors", "optimizer.safetensors"};

// Checkpoints of steps 1 and 2; the tests damage step 2.
struct DamagedCheckpoint : ::testing::Test {
  DamagedCheckpoint() {
    CheckpointStore store(dir.path());
    for (const int64_t step : {1, 2}) store.save(step, content_of(step), false);
  }

  void expect_reported(const std::string& path) const {
    EXPECT_THAT(message_of([&] { load_checkpoint(dir.path()); }),
                AnyOf(StartsWith(path + ": is damaged: "), StartsWith(path + ": cannot be opened"),
                      HasSubstr(": has no manifest.json")));
  }

  TempDir dir;
};

TEST_F(DamagedCheckpoint, EveryFlippedBitIsDetected) {
  for (const char* name : kFiles) {
    const auto path = dir / "step-00000002/" + name;
    const auto intact = get_bytes(path);
    for (size_t at = 0; at < intact.size(); ++at) {
      auto bytes = intact;
      bytes[at] ^= 1 << at % 8;
      put_bytes(path, bytes);
      expect_reported(path);
    }
    put_bytes(path, intact);
  }
  expect_content_of(2, load_checkpoint(dir.path()));
}

TEST_F(DamagedCheckpoint, EveryTruncationIsDetected) {
  for (const char* name : kFiles) {
    const auto path = dir / "step-00000002/" + name;
    const auto intact = get_bytes(path);
    for (size_t length = 0; length < intact.size(); ++length) {
      put_bytes(path, intact.substr(0, length));
      expect_reported(path);
    }
    put_bytes(path, intact + "x");
    expect_reported(path);
    put_bytes(path, intact);
  }
}

TEST_F(DamagedCheckpoint, MessageHasExpectedAndFoundValues) {
  const auto path = dir / "step-00000002/model.safetensors";
  const auto intact = get_bytes(path);
  put_bytes(path, intact.substr(0, 10));
  EXPECT_EQ(message_of([&] { load_model(dir.path()); }),
            path + ": is damaged: has 10 bytes, the manifest says " +
                std::to_string(intact.size()) + "; use another checkpoint");
  auto bytes = intact;
  bytes.back() ^= 64;
  put_bytes(path, bytes);
  EXPECT_EQ(message_of([&] { load_model(dir.path()); }),
            path + ": is damaged: its checksum is " + checksum_of(bytes) + ", the manifest says " +
                checksum_of(intact) + "; use another checkpoint");
}

TEST_F(DamagedCheckpoint, ThePreviousOneIsLoadedAndTheDamagedOneReported) {
  for (const char* name : kFiles) {
    const auto path = dir / "step-00000002/" + name;
    const auto intact = get_bytes(path);
    auto flipped = intact;
    flipped[flipped.size() / 2] ^= 1;
    for (const auto& bytes : {flipped, intact.substr(1), std::string()}) {
      put_bytes(path, bytes);
      if (bytes.empty()) std::filesystem::remove(path);
      const auto before = snapshot(dir.path());
      const auto newest = newest_whole(dir.path());
      ASSERT_TRUE(newest.checkpoint);
      expect_content_of(1, *newest.checkpoint);
      EXPECT_THAT(newest.skipped, ElementsAre(StartsWith(path)));
      EXPECT_EQ(snapshot(dir.path()), before);
    }
    put_bytes(path, intact);
    EXPECT_EQ(newest_whole(dir.path()).checkpoint->step, 2);
  }
}

TEST_F(DamagedCheckpoint, AllDamagedMeansNone) {
  for (const char* step : {"1", "2"})
    put_bytes(dir / "step-0000000" + step + "/optimizer.safetensors", "x");
  const auto newest = newest_whole(dir.path());
  EXPECT_FALSE(newest.checkpoint);
  EXPECT_THAT(newest.skipped,
              ElementsAre(HasSubstr("step-00000002/optimizer"), HasSubstr("step-00000001/")));
}

TEST_F(DamagedCheckpoint, IsReplacedWhenItsStepIsReachedAgain) {
  put_bytes(dir / "step-00000002/manifest.json", "x");
  CheckpointStore store(dir.path());
  EXPECT_EQ(newest_whole(dir.path()).checkpoint->step, 1);
  store.save(2, content_of(2), false);
  expect_content_of(2, load_checkpoint(dir.path()));
  EXPECT_THAT(names_in(dir.path()),
              ElementsAre(".lock", ".saved", "last", "step-00000001", "step-00000002"));
}

TEST_F(DamagedCheckpoint, AForgedManifestDoesNotMakeAHostileFileValid) {
  const auto path = dir / "step-00000002/model.safetensors";
  const std::string hostile("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
  put_bytes(path, hostile);
  auto manifest = load_manifest(dir.path());
  manifest.model = {10, checksum_of(hostile)};
  put_bytes(dir / "step-00000002/manifest.json", format_manifest(manifest));
  EXPECT_THAT(message_of([&] { load_checkpoint(dir.path()); }),
              HasSubstr("this is not a safetensors file"));
  EXPECT_EQ(newest_whole(dir.path()).checkpoint->step, 1);
}

}  // namespace
}  // namespace translution::testing
