// `translution data cifar10` on small strips: the images that it writes, and what it refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/program.h"
#include "tests/support/temp_dir.h"
#include "translution/core/error.h"
#include "translution/data/image_file.h"
#include "translution/io/image.h"

namespace translution {
namespace {

using namespace detail;
using ::testing::HasSubstr;

constexpr int kRows = 3, kCols = 1024;

RgbImage strip_of(int seed, int cols = kCols) {
  RgbImage strip{kRows, cols, {}};
  for (int i = 0; i < kRows * cols * 3; ++i)
    strip.pixels.push_back(static_cast<uint8_t>((i * 31 + i / 96 * 7 + seed * 50) % 256));
  return strip;
}

// A fixture with five training strips and a test strip of three images each.
class DataCifar10 : public ::testing::Test {
 protected:
  DataCifar10() {
    for (int s = 1; s <= 5; ++s) put(join("data_batch_", s, ".png"), encode_png(strip_of(s)));
    put("test_batch.png", encode_png(strip_of(0)));
    put("train_lables.json", "[0,1,2,3,4,5,6,7,8,9,0,0,0,0,9]");
    put("test_lables.json", "[3,3,0]");
  }
  void put(const std::string& name, const std::string& bytes) const {
    testing::put_bytes(folder / name, bytes);
  }
  Outcome write(const std::string& before = "") const {
    return run("data cifar10 " + folder.path() + " --out " + out, before);
  }
  void expect_failure(const std::string& message) const {
    const auto outcome = write();
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("translution: " + folder.path() + "/" + message + "\n"));
    EXPECT_EQ(testing::names_in(place.path()).size(), 0u) << "something is left behind";
  }

  const testing::TempDir folder, place;
  const std::string out = place / "images";
};

TEST_F(DataCifar10, WritesEveryImageUnderItsClass) {
  const auto outcome = write();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(out + ": 18 images of 32x32 pixels\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  airplane        5    1\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  all            15    3\n"));
  // The eighth training image is the second one of the third strip.
  const auto image = read_image(out + "/train/horse/000007.png");
  const auto strip = strip_of(3).pixels;
  EXPECT_EQ(image.rows, 32);
  EXPECT_EQ(image.cols, 32);
  EXPECT_EQ(image.pixels, std::vector(strip.begin() + kCols * 3, strip.begin() + kCols * 6));
  EXPECT_EQ(testing::names_in(out + "/val/cat"),
            (std::set<std::string>{"000000.png", "000001.png"}));
  EXPECT_EQ(testing::names_in(place.path()), std::set<std::string>{"images"});
}

TEST_F(DataCifar10, RefusesDamagedFiles) {
  put("test_lables.json", "[3,3]");
  expect_failure(
      "test_lables.json: has 2 labels, but there are more images; expected one per row of "
      "the strips");
  put("test_lables.json", "[3,3,0,1]");
  expect_failure("test_lables.json: has 4 labels for 3 images; expected one per row of the strips");
  put("test_lables.json", "[3,10,0]");
  expect_failure("test_lables.json: expected labels from 0 to 9; label 1 is another value");
  put("test_lables.json", "[3,-1,0]");
  expect_failure("test_lables.json: expected labels from 0 to 9; label 1 is another value");
  put("test_lables.json", "{");
  expect_failure("test_lables.json: expected a JSON list of labels");
  put("test_lables.json", "[3,3,0]");
  put("test_batch.png", encode_png(strip_of(0, 1000)));
  expect_failure("test_batch.png: expected 1024 columns, an image of 32x32 per row, got 1000");
  std::filesystem::remove(folder / "data_batch_4.png");
  expect_failure("data_batch_4.png: cannot be opened: No such file or directory");
}

TEST_F(DataCifar10, ReplacesNothingAndIsNeverHalfWritten) {
  EXPECT_EQ(write(with_fault("kill:30")).code, -1);
  EXPECT_FALSE(std::filesystem::exists(out));
  ASSERT_EQ(write().code, 0);
  const auto again = write();
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(again.err,
            "translution: " + out + ": exists already; remove it, or name another directory\n");
}

TEST(DataCifar10Calls, AreRefusedInOneLine) {
  expect_refused({"data cifar10 --out x", "DIR is missing; see translution data cifar10 --help"});
  expect_refused({"data cifar10 x", "--out DIR is missing; see translution data cifar10 --help"});
  expect_refused(
      {"data cifar10 x --out ''", "--out: expected a value, got ''; is a shell variable not set?"});
}

}  // namespace
}  // namespace translution
