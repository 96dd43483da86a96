// Points through the program: `translution data molecules`, and what `train` refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "tests/apps/program.h"
#include "tests/data/ply_files.h"
#include "tests/support/temp_dir.h"
#include "translution/core/error.h"

namespace translution {
namespace {

using namespace detail;
using testing::ascii_ply;
using ::testing::HasSubstr;

constexpr const char* kList =
    "m1 2 -4.5\nC 0 0 0\nH 0 0 1.09\n"
    "m2 1 -1\nO 0 0 0\n"
    "m3 1 -2\nO 0 0 0\n";

class DataPoints : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) const {
    const auto path = std::filesystem::path(folder / name);
    std::filesystem::create_directories(path.parent_path());
    testing::put_bytes(path, bytes);
  }
  // Expects the message, which begins with a path in the folder, and exit code 1; before it, lines
  // about single files.
  void expect_failure(const std::string& call, const std::string& message,
                      const std::string& before = "") const {
    const auto outcome = run(call);
    EXPECT_EQ(outcome.code, 1) << call;
    EXPECT_EQ(outcome.err, before + "translution: " + folder.path() + message + "\n") << call;
  }

  const testing::TempDir folder;
  const std::string out = folder / "out";
  const std::string train =
      "train --model vit-a/12 --out " + out + " --data points:" + folder.path();
};

TEST_F(DataPoints, WritesMoleculesThatPointsReads) {
  put("list", kList);
  const auto text =
      output_of("data molecules " + folder / "list" + " --val-share 0.34 --out " + folder.path());
  EXPECT_THAT(text, HasSubstr(folder.path() + ": 3 molecules of H, C, O\n"));
  EXPECT_THAT(text, HasSubstr("  train.txt          2"));
  EXPECT_THAT(testing::get_bytes(folder / "train.txt"), HasSubstr("features H C O\ncloud "));
  const auto outcome = run(train);  // the data is read before it is compared with the model
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("vit-a/12: expected images, got points (points:" + folder.path() + ")"));
}

TEST_F(DataPoints, ReadsADirectoryOfXyzFiles) {
  put("xyz/a.xyz", "1\n\nH 0 0 0\n");
  put("xyz/b.xyz", "1\n\nHe 0 0 0\n");
  put("energies", "a.xyz 1 9\nb.xyz 2 9\n");
  const std::string call = "data molecules " + folder / "xyz" + " --out " + out;
  output_of(call + " --val-share 0.5 --features charge --energies " + folder / "energies");
  EXPECT_THAT(testing::get_bytes(out + "/train.txt"), HasSubstr("features charge\ncloud "));
  const auto refusal = "xyz is a directory: expected --energies FILE with the energies of its .xyz";
  const auto outcome = run(call);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr(refusal));
}

TEST_F(DataPoints, AFailedCallLeavesNoData) {
  put("list", kList);
  const std::string call = "data molecules " + folder / "list" + " --val-share 0.34 --out " + out;
  EXPECT_NE(run(call, with_fault("kill:3")).code, 0);
  EXPECT_FALSE(std::filesystem::exists(out + "/train.txt"));
}

struct WrongFile {
  const char* file;
  const char* bytes;
  const char* message;
};

TEST_F(DataPoints, WrongMoleculesAreReportedWithTheirLine) {
  const WrongFile wrong[] = {
      {"list", "", "/list: has no molecules; expected lines 'NAME ATOMS ENERGY'"},
      {"list", "water", "/list:1: expected 'NAME ATOMS ENERGY', got 'water'"},
      {"list", "m 1 x", "/list:1: expected an energy, got 'x'"},
      {"list", "m 1 1\n", "/list:1: expected 1 atoms, the file ends after 0"},
      {"list", "m 1 1\nh 0 0 0\n", "/list:2: expected a chemical element, got 'h'"}};
  for (const auto& [file, bytes, message] : wrong) {
    put(file, bytes);
    expect_failure("data molecules " + folder / file + " --out " + out, message);
  }
  EXPECT_FALSE(std::filesystem::exists(out));
  expect_failure("data molecules " + folder / "nowhere" + " --out " + out,
                 "/nowhere: cannot be opened: No such file or directory");
}

TEST_F(DataPoints, WrongTextsAreReportedWithTheirLine) {
  const std::string good = "axes 1\ntargets numbers\ncloud 1 1\n0\ncloud 2 1\n0\n";
  const WrongFile wrong[] = {
      {"train.txt", "", "/train.txt: has no clouds; expected lines 'cloud TARGET POINTS'"},
      {"train.txt", "cloud 1 1",
       "/train.txt:1: expected 'axes 1', 'axes 2' or 'axes 3' before the first cloud"},
      {"train.txt", "axes 1\ntargets numbers\ncloud one 1\n",
       "/train.txt:3: expected a number as target, got 'one'"},
      {"train.txt", "axes 1\ntargets numbers\ncloud 1 1\n0 0\n",
       "/train.txt:4: expected 1 numbers (1 of a position, 0 features), got 2"},
      {"train.txt", "axes 1\ntargets numbers\ncloud 1 1\n0\n",
       "/train.txt: expected different targets, all are 1"},
      {"val.txt", "axes 1\ntargets classes\ncloud 1 1\n0\n",
       "/val.txt: expected axes 1, targets numbers, no features as in train.txt, got axes 1, "
       "targets classes, no features"}};
  for (const auto& [file, bytes, message] : wrong) {
    put("train.txt", good), put("val.txt", good);
    put(file, bytes);
    expect_failure(train, message);
  }
  std::filesystem::remove(folder / "val.txt");
  put("train.txt", good);
  expect_failure(train, "/val.txt: cannot be opened: No such file or directory");
}

TEST_F(DataPoints, WrongPlyFilesAreReportedWithTheirPlace) {
  const std::string broken =
      "/train: 1 of 1 clouds (100 %) are broken, expected at most 0 (repair or remove them, or "
      "raise --max-broken); the first: " +
      folder.path();
  const std::string good = ascii_ply({"0 0 0", "1 1 1"});
  const auto expect_broken = [&](const std::string& bytes, const std::string& message) {
    for (const std::string part : {"train", "val"}) put(part + "/a/1.ply", good);
    put("train/a/1.ply", bytes);
    expect_failure(train, broken + message, folder.path() + message + "\n");
  };
  expect_failure(train,
                 ": has neither train.txt nor a folder train; expected train.txt and val.txt, or "
                 "train/<class>/ and val/<class>/ with .ply files");
  expect_broken("", "/train/a/1.ply: is not a PLY file: expected a first line 'ply'");
  expect_broken(good.substr(0, 60),
                "/train/a/1.ply: the PLY header has no line 'end_header'; is the file truncated?");
  expect_broken("ply\nformat ascii 1.0\nend_header\n", "/train/a/1.ply: has no element 'vertex'");
  expect_broken("ply\nformat ascii 1.0\nelement vertex x\n",
                "/train/a/1.ply:3: expected a count from 0 to 4294967296, got 'x'");
  put("train/a/1.ply", good);
  put("val/a/1.ply", ascii_ply({"0 0 0 1"}, "property float mass\n"));
  expect_failure(train,
                 "/val/a/1.ply: expected the properties none besides x, y and z, as in the first "
                 "file, got mass; all files need the same");
  std::filesystem::remove(folder / "val/a/1.ply");
  expect_failure(train, "/val/a: has no .ply file; add some, or remove the folder");
}

TEST(DataPointsCalls, OfModelsForImagesAndTextAreRefused) {
  const std::pair<const char*, const char*> models[] = {
      {"vit-a", "vit-a/16: expected images, got points"},
      {"gpt-a", "gpt-a-160: expected text, got points"}};
  for (const auto& [model, message] : models) {
    const auto outcome = run(join("train --out x --data digits-points:20 --model ", model));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(join(message, " (digits-points:20)")));
  }
}

TEST(DataPointsCalls, AreRefusedInOneLine) {
  const WrongCall wrong[] = {
      {"train --out x --model vit-a --data digits-points:0",
       "data digits-points:N: expected 1 to 1000000 digits, got '0'"},
      {"train --out x --model vit-a --data points",
       "data points: expected a directory, as in points:DIR"},
      {"train --out x --model vit-a --data mnist-points",
       "data mnist-points: expected a directory after the kind, as in mnist-points:DIR"},
      {"train --out x --model vit-a --data point:x",
       "unknown kind of data 'point'; did you mean 'points'?"},
      {"train --out x --model vit-a --data digits:20 --train-on clutter",
       "train-on: expected static or dynamic for images, got clutter; points have it (--data "
       "digits-points or mnist-points:DIR)"},
      {"train --out x --model vit-a --data digits:20 --eval-on static,rotated",
       "eval-on: expected static or dynamic for images, got rotated; points have it (--data "
       "digits-points or mnist-points:DIR)"},
      {"train --out x --model vit-a --data digits-points --rotate any",
       "--rotate: expected points in files (--data points:DIR), got digits-points"},
      {"train --out x --model vit-a --data points:x --rotate all",
       "unknown rotate 'all'; expected one of none, upright, any"},
      {"train --out x --model vit-a --data digits --max-points 5",
       "--max-points: expected points in files (--data points:DIR), got digits"},
      {"train --out x --model vit-a --data points:x --max-points -1",
       "--max-points: expected 0 to 1099511627776, got -1"},
      {"train --out x --model vit-a --data points:x --augment full",
       "--augment: expected image folders (--data images:DIR), got points:x"},
      {"data molecules x", "--out DIR is missing; see translution data molecules --help"},
      {"data molecules x --out y --features mass",
       "unknown features 'mass'; expected one of element, charge"},
      {"data molecules x --out y --val-share 2", "--val-share: expected 0 to 1, got 2"},
      {"data molecules x --out y --energies z",
       "--energies: expected a directory of .xyz files, x is none"}};
  for (const auto& call : wrong) expect_refused(call);
}

}  // namespace
}  // namespace translution
