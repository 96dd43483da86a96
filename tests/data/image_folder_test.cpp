#include "translution/data/image_folder.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <numeric>
#include <opencv2/core/utility.hpp>
#include <set>
#include <thread>

#include "tests/data/pictures.h"
#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes `images` different images for each of the classes cat, dog and eel.
void write_classes(const TemporaryFolder& folder, const std::string& below, int images) {
  int number = 0;
  for (const char* name : {"dog", "cat", "eel"})
    for (int i = 0; i < images; ++i) {
      const RgbImage image = make_image(40 + number, 50, [=](int row, int col, int c) {
        return number * 9 + row * 2 + col * (c + 1);
      });
      const bool png = ++number % 3 == 0;
      folder.write(join(below, name, "/", i, png ? ".png" : ".JPEG"),
                   png ? encode_png(image) : to_jpeg(image, Chroma::quarter));
    }
}

ImageFolderOptions small(Augment augment) {
  ImageFolderOptions options;
  options.image_size = 16;
  options.seed = 11;
  options.augment = augment;
  return options;
}

BatchPlan plan_of(std::vector<int64_t> samples, int64_t epoch = 0, int64_t index = 0) {
  return {epoch, index, std::move(samples)};
}

std::vector<int64_t> all_of(const Dataset& set) {
  std::vector<int64_t> samples(set.size());
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

std::string opening(const std::string& folder) {
  return message_of([&] { ImageFolderDataset(folder, {}); });
}

// The number of threads of this process.
int64_t count_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(ImageFolder, KeepsOpenCvsThreadCountAndStartsNoThreads) {
  const int before = cv::getNumThreads();
  cv::setNumThreads(2);
  const TemporaryFolder folder;
  for (int i = 0; i < 20; ++i)
    folder.write(join("a/", i, ".png"), encode_png(varied_image(700, 900)));
  auto options = small(Augment::full);
  options.image_size = 600;  // OpenCV would use several threads for so many pixels
  const ImageFolderDataset set(folder.path(), options);
  const int64_t threads = count_threads();
  set.load(plan_of(all_of(set)));
  EXPECT_EQ(count_threads(), threads);
  EXPECT_EQ(cv::getNumThreads(), 2);
  cv::setNumThreads(before);
}

TEST(ImageFolder, NumbersClassesAndImagesByName) {
  const TemporaryFolder folder;
  const std::string png = encode_png(varied_image(9, 9));
  for (const char* name : {"b/2.jpg", "b/10.PNG", "b/.hidden.jpg", "b/notes.txt",
                           "b/x.jpg/deep.jpg", "A/z.JpEg", "a/q.png", ".git/x.png", "readme.png"})
    folder.write(name, png);
  const ImageFolderDataset set(folder.path(), small(Augment::none));
  EXPECT_THAT(set.classes(), ElementsAre("A", "a", "b"));
  ASSERT_EQ(set.size(), 4);
  std::vector<std::string> names;
  for (int64_t i = 0; i < 4; ++i) names.push_back(set.path(i).substr(folder.path().size()));
  EXPECT_THAT(names, ElementsAre("/A/z.JpEg", "/a/q.png", "/b/10.PNG", "/b/2.jpg"));
  const Batch batch = set.load(plan_of({3, 0, 1}));
  EXPECT_TRUE(batch.target.equal(torch::tensor({2, 0, 1}, torch::kLong)));
  EXPECT_EQ(batch.input.sizes(), (std::vector<int64_t>{3, 3, 16, 16}));
}

TEST(ImageFolder, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  const std::string path = folder.path();
  EXPECT_THAT(opening(path + "/none"), HasSubstr(path + "/none: is not a folder; expected"));
  EXPECT_THAT(opening(path), HasSubstr(path + ": has no subfolders; expected one per class"));
  folder.write("cat/1.png", encode_png(varied_image(9, 9)));
  folder.write("dog/.1.png", "");
  EXPECT_THAT(opening(path), HasSubstr(path + "/dog: has no .jpg, .jpeg or .png image"));
}

TEST(ImageFolders, NeedTrainAndValWithTheSameClasses) {
  const TemporaryFolder folder;
  const std::string path = folder.path();
  const auto message = [&] {
    return message_of([&] { open_image_folders(path, small(Augment::light)); });
  };
  EXPECT_THAT(message(), HasSubstr(path + ": has no folder train; expected"));
  write_classes(folder, "train/", 2);
  EXPECT_THAT(message(), HasSubstr(path + ": has no folder val; expected"));
  write_classes(folder, "val/", 1);
  EXPECT_EQ(message(), "");
  const std::string png = encode_png(varied_image(9, 9));
  folder.write("val/fox/1.png", png);
  EXPECT_EQ(message(), path + "/train: has no class 'fox', which " + path +
                           "/val has; both need the same folders");
  folder.write("train/fox/1.png", png);
  folder.write("train/gnu/1.png", png);
  EXPECT_THAT(message(), HasSubstr(path + "/val: has no class 'gnu'"));
}

TEST(ImageFolders, TrainIsAugmentedAndValIsNot) {
  const TemporaryFolder folder;
  write_classes(folder, "train/", 2);
  write_classes(folder, "val/", 2);
  const ImageFolders sets = open_image_folders(folder.path(), small(Augment::light));
  const auto first = [](const Dataset& set, int64_t epoch) {
    return set.load(plan_of({0}, epoch)).input;
  };
  EXPECT_FALSE(first(*sets.train, 0).equal(first(*sets.train, 1)));
  EXPECT_TRUE(first(*sets.val, 0).equal(first(*sets.val, 1)));
}

TEST(ImageFolder, ASampleDependsOnlyOnSeedEpochAndSampleOnAnyThread) {
  const TemporaryFolder folder;
  write_classes(folder, "", 5);
  const ImageFolderDataset set(folder.path(), small(Augment::light));
  const auto expected = set.load(plan_of(all_of(set), 3));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t s = t; s < set.size(); s += 2) {  // in other batches than above
        const Batch batch = set.load(plan_of({(s + 1) % set.size(), s}, 3, s));
        wrong[t] += !batch.input[1].equal(expected.input[s]);
        wrong[t] += batch.target[1].item<int64_t>() != expected.target[s].item<int64_t>();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));

  auto options = small(Augment::light);
  options.seed = 12;
  const ImageFolderDataset other(folder.path(), options);
  EXPECT_FALSE(other.load(plan_of({4}, 3)).input[0].equal(expected.input[4]));
}

TEST(ImageFolder, MixesBatchesByTheirIndex) {
  const TemporaryFolder folder;
  write_classes(folder, "", 2);
  const ImageFolderDataset set(folder.path(), small(Augment::full));
  const Batch a = set.load(plan_of({0, 1, 4, 5}, 2, 7)), b = set.load(plan_of({0, 1, 4, 5}, 2, 7));
  EXPECT_TRUE(a.input.equal(b.input) && a.target.equal(b.target));
  EXPECT_FALSE(a.target.equal(set.load(plan_of({0, 1, 4, 5}, 2, 8)).target));
  EXPECT_EQ(a.target.sizes(), (std::vector<int64_t>{4, 3}));
  EXPECT_TRUE(a.target.sum(1).allclose(torch::ones({4})));
}

// One file per kind of damage.
std::vector<std::string> broken_files() {
  const RgbImage image = varied_image(20, 30);
  const std::string jpeg = to_jpeg(image, Chroma::quarter), png = encode_png(image);
  std::vector<std::string> files{"", "only text\n", std::string(500, '\0')};
  for (const std::string& whole : {jpeg, png})
    for (const double share : {0.1, 0.5, 0.9, 0.99})
      files.push_back(whole.substr(0, whole.size() * share));
  std::string flipped = png;
  flipped[flipped.size() / 2] ^= 4;
  files.push_back(flipped);
  files.push_back(RawPng{30000, 30000, 8, 2, {"abc"}, "", ""}.bytes());
  files.push_back(RawPng{9, 9, 8, 2, {"abc"}, "", ""}.bytes());
  return files;
}

TEST(BrokenImages, AreReportedOnceCountedAndReplaced) {
  const TemporaryFolder folder;
  write_classes(folder, "", 14);
  const auto broken = broken_files();
  std::set<std::string> paths;
  for (size_t i = 0; i < broken.size(); ++i)
    paths.insert(folder.write(join("dog/broken", i, i % 2 ? ".jpg" : ".png"), broken[i]));

  std::vector<std::string> reported;
  auto options = small(Augment::light);
  options.max_broken_share = 0.5;
  options.report_broken = [&](const std::string& line) { reported.push_back(line); };
  const ImageFolderDataset set(folder.path(), options);
  ASSERT_EQ(set.size(), 42 + static_cast<int64_t>(broken.size()));
  const Batch first = set.load(plan_of(all_of(set), 1)), again = set.load(plan_of(all_of(set), 1));
  EXPECT_TRUE(first.input.equal(again.input) && first.target.equal(again.target));
  EXPECT_TRUE(first.input.isfinite().all().item<bool>());

  EXPECT_EQ(reported, set.broken().lines());
  std::set<std::string> named;
  for (const std::string& line : reported) named.insert(line.substr(0, line.find(": ")));
  EXPECT_EQ(named, paths);
  EXPECT_EQ(reported.size(), broken.size());
}

TEST(BrokenImages, AreReplacedByTheSameSampleInAnyOrderOfLoading) {
  const TemporaryFolder folder;
  write_classes(folder, "", 6);
  folder.write("dog/a.jpg", "text");
  folder.write("eel/b.png", "text");
  auto options = small(Augment::none);
  options.max_broken_share = 0.3;
  const ImageFolderDataset one(folder.path(), options), other(folder.path(), options);
  auto backwards = all_of(other);
  std::reverse(backwards.begin(), backwards.end());
  const Batch a = one.load(plan_of(all_of(one), 5)), b = other.load(plan_of(backwards, 5));
  EXPECT_TRUE(a.input.equal(b.input.flip(0)) && a.target.equal(b.target.flip(0)));
  // The class is that of the replacement.
  for (int64_t s = 0; s < one.size(); ++s) {
    if (one.path(s).find("/a.jpg") == std::string::npos) continue;
    int64_t found = -1;
    for (int64_t t = 0; t < one.size(); ++t)
      if (t != s && a.input[t].equal(a.input[s])) found = t;
    ASSERT_GE(found, 0);
    EXPECT_EQ(a.target[s].item<int64_t>(), one.class_of(found));
  }
}

TEST(BrokenImages, StopTheRunWhenThereAreTooMany) {
  const TemporaryFolder folder;
  write_classes(folder, "", 20);
  for (int i = 0; i < 6; ++i) folder.write(join("cat/broken", i, ".jpg"), "text");
  const auto message = [&](double share) {
    auto options = small(Augment::none);
    options.max_broken_share = share;
    return message_of([&] {
      const ImageFolderDataset set(folder.path(), options);
      set.load(plan_of(all_of(set)));
    });
  };
  const std::string cat = folder.path() + "/cat/broken";
  EXPECT_EQ(message(0.1), "");  // 6 of 66
  EXPECT_EQ(message(6.0 / 66), "");
  EXPECT_THAT(message(0.09),
              HasSubstr(folder.path() +
                        ": 6 of 66 images (9.09091 %) are broken, expected at most 5 (repair or "
                        "remove them, or raise --max-broken); the first: " +
                        cat + "0.jpg: is neither"));
  EXPECT_THAT(message(0.09), HasSubstr("; " + cat + "2.jpg: is neither"));
  EXPECT_THAT(message(0.01), HasSubstr("1 of 66 images"));
  EXPECT_THAT(message(0), HasSubstr("1 of 66 images"));
  EXPECT_THAT(message(0.6), HasSubstr("max_broken_share: expected 0 to 0.5, got 0.6"));
}

TEST(BrokenImages, StopTheRunIfAllOfASmallFolderIsBroken) {
  for (const int images : {1, 2, 5}) {
    const TemporaryFolder folder;
    for (int i = 0; i < images; ++i) folder.write(join("cat/", i, ".jpg"), "text");
    const ImageFolderDataset set(folder.path(), small(Augment::light));
    EXPECT_THAT(message_of([&] { set.load(plan_of({0})); }),
                HasSubstr("are broken, expected at most"));
  }
}

TEST(BrokenImages, IncludeFilesDeletedDuringTheRun) {
  const TemporaryFolder folder;
  write_classes(folder, "", 4);
  auto options = small(Augment::none);
  options.max_broken_share = 0.1;
  const ImageFolderDataset set(folder.path(), options);
  std::filesystem::remove(set.path(2));
  EXPECT_EQ(set.load(plan_of({2, 3})).input.size(0), 2);
  ASSERT_EQ(set.broken().lines().size(), 1u);
  EXPECT_THAT(set.broken().lines()[0], HasSubstr(set.path(2) + ": cannot be opened"));
}

}  // namespace
}  // namespace translution
