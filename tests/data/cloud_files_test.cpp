// Clouds in files, as `points:DIR`.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/data/clouds.h"
#include "tests/data/idx_files.h"
#include "tests/data/ply_files.h"
#include "translution/data/cloud_folder.h"
#include "translution/data/sources.h"

namespace translution {
namespace {

using testing::ascii_ply;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::SizeIs;

class CloudFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    const auto path = std::filesystem::path(directory_.path) / name;
    std::filesystem::create_directories(path.parent_path());
    directory_.write(name, bytes);
  }
  std::string path(const std::string& name) const { return directory_.path + "/" + name; }
  DataOptions options() const {
    DataOptions options;
    options.data = "points:" + directory_.path;
    options.max_broken = 0;
    return options;
  }
  std::string refusal() const {
    return message_of<std::runtime_error>([&] { open_data(options()); });
  }

  // Six clouds of a point and up; number n has the target n.
  void write_numbers() const {
    std::string text = "axes 2\ntargets numbers\nfeatures a b\n";
    for (int n = 0; n < 6; ++n) {
      text += "cloud " + std::to_string(n) + " " + std::to_string(n + 1) + "\n";
      for (int p = 0; p <= n; ++p) text += std::to_string(p) + " 1  2 3\n";
    }
    write("train.txt", text);
    write("val.txt", "axes 2\ntargets numbers\nfeatures a b\ncloud 10 1\n0 0 1 1\n");
  }

  // Ten clouds of each of two classes; those of "many" have 30 points.
  void write_folders(const std::string& properties = "property uchar red\n") const {
    for (const std::string part : {"train", "val"})
      for (int n = 0; n < 10; ++n) {
        const auto z = std::to_string(n);
        write(part + "/few/" + z + ".ply", ascii_ply({"0 0 0 0", "4 4 " + z + " 255"}, properties));
        std::vector<std::string> many;
        for (int p = 0; p < 30; ++p) many.push_back(std::to_string(p) + " 0 " + z + " 51");
        write(part + "/many/" + z + ".PLY", ascii_ply(many, properties));
      }
  }

 private:
  const testing::Directory directory_;
};

Batch all_of(const Dataset& set, int64_t epoch = 0) {
  BatchPlan plan{epoch, 0, {}};
  for (int64_t s = 0; s < set.size(); ++s) plan.samples.push_back(s);
  return set.load(plan);
}

TEST_F(CloudFiles, NumbersAreStandardised) {
  write_numbers();
  const auto source = open_data(options());
  EXPECT_EQ(source.axes, 2);
  EXPECT_EQ(source.channels, 2);
  EXPECT_TRUE(source.classes.empty());
  EXPECT_DOUBLE_EQ(source.target_mean, 2.5);
  EXPECT_DOUBLE_EQ(source.target_scale, std::sqrt(35.0 / 12));
  const auto batch = all_of(*source.train);
  EXPECT_EQ(batch.target.scalar_type(), torch::kFloat);
  EXPECT_TRUE((batch.target * source.target_scale + source.target_mean)
                  .allclose(torch::arange(6, torch::kFloat), 0, 1e-5));
  EXPECT_EQ(batch.input.sizes(), (std::vector<int64_t>{6, 6, 2}));
  EXPECT_TRUE(batch.mask.sum(1).equal(torch::arange(1, 7)));
  EXPECT_TRUE(batch.positions[5].select(1, 0).equal(torch::arange(6, torch::kFloat)));
  ASSERT_THAT(source.evaluation, SizeIs(1));
  EXPECT_EQ(source.evaluation[0].name, "val");
  EXPECT_NEAR(all_of(*source.evaluation[0].dataset).target.item<double>(),
              7.5 / source.target_scale, 1e-6);
}

TEST_F(CloudFiles, NumbersCanBeHeldOutAndLimited) {
  write_numbers();
  auto given = options();
  given.hold_out = 2;
  const auto source = open_data(given);
  EXPECT_EQ(source.train->size(), 4);
  EXPECT_EQ(source.evaluation.at(0).name, "held_out");
  EXPECT_EQ(source.evaluation[0].dataset->size(), 2);
  EXPECT_DOUBLE_EQ(source.target_mean, 2.5) << "of all of train.txt";
  given.hold_out = 0;
  given.train_limit = 3;
  EXPECT_EQ(open_data(given).train->size(), 3);
}

TEST_F(CloudFiles, ClassesOfATextAreNumberedByName) {
  const std::string header = "axes 1\ntargets classes\n";
  write("train.txt", header + "cloud z 1\n1\ncloud a 1\n2\ncloud z 1\n3\n");
  write("val.txt", header + "cloud z 1\n1\n");
  const auto source = open_data(options());
  EXPECT_THAT(source.classes, ElementsAre("a", "z"));
  EXPECT_TRUE(all_of(*source.train).target.equal(torch::tensor({1, 0, 1})));
  EXPECT_EQ(source.target_scale, 0);
  EXPECT_THAT(source.train->labels(), ElementsAre(1, 0, 1));
  write("val.txt", header + "cloud b 1\n1\n");
  EXPECT_EQ(refusal(), path("val.txt") + ": has the class 'b', which train.txt has not");
  auto rotated = options();
  write("val.txt", header + "cloud z 1\n1\n");
  rotated.rotation = Rotation::any;
  EXPECT_EQ(message_of<std::invalid_argument>([&] { open_data(rotated); }),
            "rotate: expected points with 2 or 3 axes, got 1");
}

TEST_F(CloudFiles, TextsMustAgree) {
  write_numbers();
  write("val.txt", "axes 2\ntargets numbers\nfeatures b a\ncloud 10 1\n0 0 1 1\n");
  EXPECT_EQ(refusal(), path("val.txt") +
                           ": expected axes 2, targets numbers, features a b as in train.txt, got "
                           "axes 2, targets numbers, features b a");
  write("train.txt", "axes 1\ntargets numbers\ncloud 3 1\n0\ncloud 3 1\n0\n");
  write("val.txt", "axes 1\ntargets numbers\ncloud 3 1\n0\n");
  EXPECT_EQ(refusal(), path("train.txt") + ": expected different targets, all are 3");
  std::filesystem::remove(path("val.txt"));
  EXPECT_EQ(refusal(), path("val.txt") + ": cannot be opened: No such file or directory");
}

TEST_F(CloudFiles, FoldersAreClassesAndLargeCloudsAreReduced) {
  write_folders();
  auto given = options();
  given.max_points = 7;
  const auto source = open_data(given);
  EXPECT_EQ(source.axes, 3);
  EXPECT_EQ(source.channels, 1);
  EXPECT_THAT(source.classes, ElementsAre("few", "many"));
  EXPECT_EQ(source.train->size(), 20);
  const auto batch = all_of(*source.train);
  EXPECT_EQ(batch.positions.sizes(), (std::vector<int64_t>{20, 7, 3}));
  EXPECT_TRUE(batch.target.equal(torch::arange(20) / 10 >= 1));
  EXPECT_TRUE(batch.mask.sum(1).equal(2 + 5 * batch.target));
  EXPECT_TRUE(batch.input[0].flatten().slice(0, 0, 2).equal(torch::tensor({0.f, 1.f})));
  EXPECT_FALSE(batch.positions.equal(all_of(*source.train, 1).positions)) << "other points";
  const auto& val = *source.evaluation.at(0).dataset;
  EXPECT_TRUE(all_of(val).positions.equal(all_of(val, 1).positions));
  testing::expect_same_for_any_workers(source.train, 3);
  given.max_points = 0;
  EXPECT_EQ(all_of(*open_data(given).train).mask.size(1), 30);
}

TEST_F(CloudFiles, OnlyTrainingCloudsAreRotated) {
  write_folders();
  const auto plain = open_data(options());
  auto given = options();
  given.rotation = Rotation::upright;
  given.hold_out = 4;
  const auto source = open_data(given);
  const auto& held_out = *source.evaluation.at(0).dataset;
  EXPECT_EQ(held_out.size(), 4);
  EXPECT_TRUE(all_of(held_out).positions.equal(all_of(held_out, 1).positions));
  EXPECT_TRUE(all_of(*source.evaluation[1].dataset)
                  .positions.equal(all_of(*plain.evaluation[0].dataset).positions));
  const auto first = all_of(*source.train), second = all_of(*source.train, 1);
  EXPECT_FALSE(first.positions.equal(second.positions));
  EXPECT_TRUE(first.positions.norm(2, -1).allclose(second.positions.norm(2, -1)));
  EXPECT_TRUE(first.positions.select(2, 2).equal(second.positions.select(2, 2))) << "upright";
  testing::expect_same_for_any_workers(source.train, 3);
}

TEST_F(CloudFiles, AllNeedTheSameProperties) {
  write_folders();
  write("val/few/3.ply", ascii_ply({"0 0 0"}));
  EXPECT_EQ(refusal(), path("val/few/3.ply") +
                           ": expected the properties red besides x, y and z, as in the first "
                           "file, got none; all files need the same");
}

TEST_F(CloudFiles, BrokenOnesAreReportedAndReplaced) {
  write_folders();
  write("train/many/0.PLY", "no cloud");
  write("train/many/1.PLY", ascii_ply({"0 0 zero 0"}, "property uchar red\n"));
  EXPECT_EQ(refusal(), path("train") +
                           ": 1 of 20 clouds (5 %) are broken, expected at most 0 (repair or "
                           "remove them, or raise --max-broken); the first: " +
                           path("train/many/0.PLY") +
                           ": is not a PLY file: expected a first line 'ply'");
  auto given = options();
  given.max_broken = 0.1;
  std::vector<std::string> reported;
  given.report = [&](const std::string& line) { reported.push_back(line); };
  const auto source = open_data(given);
  const auto batch = all_of(*source.train);
  EXPECT_THAT(reported, SizeIs(2));
  EXPECT_THAT(reported.back(), HasSubstr("many/1.PLY:9: expected a number, got 'zero'"));
  testing::expect_same_batch(batch, all_of(*source.train));
}

TEST_F(CloudFiles, DirectoriesWithoutCloudsAreRefused) {
  EXPECT_EQ(refusal(), path("").substr(0, path("").size() - 1) +
                           ": has neither train.txt nor a folder train; expected train.txt and "
                           "val.txt, or train/<class>/ and val/<class>/ with .ply files");
  write_folders();
  write_numbers();
  EXPECT_THAT(refusal(), HasSubstr(": has train.txt and a folder train; remove one of them"));
  std::filesystem::remove(path("train.txt"));
  std::filesystem::remove_all(path("val/few"));
  EXPECT_EQ(refusal(), path("val") + ": has no class 'few', which " + path("train") +
                           " has; both need the same folders");
  std::filesystem::remove_all(path("val"));
  EXPECT_THAT(refusal(), HasSubstr(": has no folder val; expected "));
}

}  // namespace
}  // namespace translution
