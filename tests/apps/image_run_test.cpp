// Image folders: training, evaluation, and broken images.

#include <gmock/gmock.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/apps/program.h"
#include "tests/data/pictures.h"
#include "translution/core/error.h"
#include "translution/io/file.h"
#include "translution/train/checkpoint.h"
#include "translution/train/metrics.h"

namespace translution {

using namespace detail;

namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kImages = 6;                                                  // of each class
const std::string kQuickly = " --lr 0.003 --warmup 5 --schedule constant";  // learns in 30 steps

// An image of brightness `level`, rising slightly to the right and downwards.
std::string picture(int level) {
  return encode_png(
      make_image(40, 40, [=](int row, int col, int) { return level + row / 4 + col / 2; }));
}

// Two classes of images, dark and light.
class ImageRun : public ::testing::Test {
 protected:
  ImageRun() {
    for (const std::string split : {"train/", "val/"})
      for (int i = 0; i < kImages; ++i) {
        folder_.write(join(split, "dark/", i, ".png"), picture(10 + i));
        folder_.write(join(split, "light/", i, ".png"), picture(210 + i));
      }
  }

  std::string write(const std::string& name, const std::string& bytes) const {
    return folder_.write(name, bytes);
  }
  std::string damage(const std::string& name) const { return write(name, "no image"); }
  std::string data_path() const { return folder_.path(); }
  std::string run_path(const std::string& name = "run") const {
    return folder_.path() + "/" + name;
  }
  Outcome train(const std::string& more, const std::string& name = "run") const {
    return train_on(data_path(), more, name);
  }
  Outcome train_on(const std::string& data, const std::string& more,
                   const std::string& name = "run") const {
    return run("train --threads 1 --data images:" + data +
               " --model vit-tiny/16 --image-size 32 --batch 12 --save-every 2 --out " +
               run_path(name) + " " + more);
  }

 private:
  const TemporaryFolder folder_;
};

TEST_F(ImageRun, LearnsToDistinguishTheClasses) {
  const auto outcome = train("--steps 30 --augment light" + kQuickly);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto evaluated = run("eval " + run_path() + " --json");
  const auto results = nlohmann::json::parse(evaluated.out).at("results").at("val");
  EXPECT_EQ(results.at("count"), 2 * kImages);
  EXPECT_EQ(results.at("top1"), 1.0);
}

// Training on one class alone would reach an accuracy of one half.
TEST_F(ImageRun, LimitsTakeBothClasses) {
  const auto outcome = train("--steps 30 --augment none --train-limit 6" + kQuickly);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(": 6 training samples (augment none), 12 in val"));
  const auto evaluated = [this](const std::string& limit) {
    const auto json = nlohmann::json::parse(run("eval " + run_path() + " --json " + limit).out);
    const auto results = json.at("results").at("val");
    return std::pair(results.at("count").get<int>(), results.at("top1").get<double>());
  };
  EXPECT_EQ(evaluated(""), std::pair(12, 1.0));
  // Bright images among the dark ones, and half as many: an even sample has half of them wrong.
  for (int i = 0; i < kImages; ++i) {
    write(join("val/dark/", i, ".png"), picture(200 + i));
    write(join("val/light/more", i, ".png"), picture(200 + i));
  }
  EXPECT_EQ(evaluated("--eval-limit 8"), std::pair(8, 0.5));
  EXPECT_EQ(evaluated("--eval-limit 8"), evaluated("--eval-limit 8"));
  EXPECT_EQ(evaluated("--eval-limit 1").first, 1);
  EXPECT_EQ(evaluated("--eval-limit 100"), std::pair(18, 12.0 / 18));
}

// With a learning rate of 0, only the images can change the loss of an epoch.
TEST_F(ImageRun, EpochsDifferWithAugmentationAndNotWithout) {
  const auto spread = [this](const std::string& name, const std::string& option) {
    EXPECT_EQ(train("--lr 0 --epochs 4 --log-every 1 " + option, name).code, 0);
    EXPECT_THAT(read_file(run_path(name) + "/config.toml"),
                HasSubstr("\naugment = \"" + name + "\"\n"));
    std::vector<double> losses;
    for (const auto& moment : read_metrics(run_path(name) + "/metrics.jsonl"))
      if (moment.split == "train") losses.push_back(moment.values.front().second);
    EXPECT_EQ(losses.size(), 4u);
    const auto [least, most] = std::minmax_element(losses.begin(), losses.end());
    return *most - *least;
  };
  EXPECT_LT(spread("none", "--augment none"), 1e-6);
  EXPECT_GT(spread("light", "--augment light"), 1e-4);
  EXPECT_GT(spread("full", ""), 1e-3) << "the default";
}

// Targets of mixed images have a share for each class of the data; the paper's model has more
// classes.
TEST_F(ImageRun, OneStepAcceptsMixedImages) {
  const auto outcome =
      run("reproduce imagenet --one-step --rows 1 --batch 4 --data images:" + data_path() +
          " --out " + run_path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(", loss "));
}

// Checkpoints that are older than the setting `augment`: their images were not augmented.
TEST_F(ImageRun, ResumesAnOldRunOnlyWithoutAugmentation) {
  ASSERT_EQ(train("--steps 2 --augment none").code, 0);
  for (const int64_t step : list_steps(run_path() + "/checkpoints")) {
    const auto path = run_path() + "/checkpoints/" + checkpoint_name(step);
    auto manifest = load_manifest(path);
    ASSERT_EQ(manifest.state["config"].erase("augment"), 1u);
    std::ofstream(path + "/manifest.json") << format_manifest(manifest);
  }
  const auto other = train("--steps 4 --resume auto");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("resume: augment is 'full' now and 'none' in "));
  const auto resumed = train("--steps 4 --resume auto --augment none");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(run("eval " + run_path()).code, 0);
}

// The new name sorts after the other class, so every label would mean another class.
TEST_F(ImageRun, RefusesARenamedClass) {
  ASSERT_EQ(train("--steps 2").code, 0);
  for (const std::string part : {"train", "val"})
    std::filesystem::rename(data_path() + "/" + part + "/dark",
                            data_path() + "/" + part + "/night");
  const std::string difference = "/checkpoints/step-00000002: 'dark' is missing, 'night' is new; ";
  const auto resumed = train("--steps 4 --resume auto");
  EXPECT_EQ(resumed.code, 2);
  EXPECT_THAT(resumed.err, HasSubstr("resume: the classes are not those of " + run_path() +
                                     difference + "use the same class folders, or another --out"));
  for (const std::string& call : {"eval " + run_path(), "eval " + run_path() + " --json",
                                  "report " + run_path() + " --out " + data_path() + "/r.html"}) {
    const auto outcome = run(call);
    EXPECT_EQ(outcome.code, 2) << call;
    EXPECT_THAT(outcome.err, HasSubstr("images:" + data_path() + ": the classes are not those of " +
                                       run_path() + difference));
  }
  for (const std::string part : {"train/", "val/"}) write(part + "dark/0.png", picture(10));
  EXPECT_THAT(run("eval " + run_path()).err, HasSubstr("step-00000002: 'night' is new; "));
}

TEST_F(ImageRun, FindsAClassFolderThatIsNotUtf8AtTheStart) {
  for (const std::string part : {"train/", "val/"}) write(part + "caf\xE9/0.png", picture(90));
  const auto outcome = train("--steps 2");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(data_path() + "/train: the name of the class folder 'caf\\xE9'"
                                                   " is not UTF-8; rename it\n"));
  EXPECT_FALSE(std::filesystem::exists(run_path()));
}

TEST_F(ImageRun, FindsADirectoryThatIsNotUtf8AtTheStart) {
  const std::string link = data_path() + "/d\xFF";
  std::filesystem::create_directory_symlink(data_path(), link);
  const auto outcome = train_on(link, "--steps 2");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("data: expected text in UTF-8, got 'images:" + data_path() + "/d\\xFF'\n"));
  EXPECT_FALSE(std::filesystem::exists(run_path() + "/checkpoints/last"));
}

TEST_F(ImageRun, NamesOfImagesMayBeAnyBytes) {
  for (const std::string part : {"train/", "val/"}) write(part + "dark/\xE9.png", picture(11));
  const auto broken = damage("train/light/\xFF.png");
  const auto trained = train("--epochs 2 --max-broken 0.2");
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(run("eval " + run_path() + " --json").code, 0);
  EXPECT_EQ(run("report " + run_path() + " --out " + data_path() + "/r.html").code, 0);
}

// One image in four files: upright and rotated, as PNG and JPEG.
TEST_F(ImageRun, AppliesTheExifOrientation) {
  ASSERT_EQ(train("--steps 2 --augment none").code, 0);
  const std::string jpeg = to_jpeg(stored_for(varied_image(48, 64), 6), Chroma::full);
  const std::string turned = with_exif(jpeg, exif_with(6));
  const RgbImage upright = decode_image(turned, "turned.jpg");
  ASSERT_EQ(upright.cols, 64);
  std::string png = encode_png(stored_for(upright, 8));
  png.insert(33, png_chunk("eXIf", exif_with(8)));
  const auto seen = [&](const std::string& name, const std::string& bytes) {
    const auto outcome = run("predict " + run_path() + " " + write(name, bytes) + " --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out).at(0).at("classes");
  };
  const auto expected = seen("upright.png", encode_png(upright));
  EXPECT_EQ(seen("turned.jpg", turned), expected);
  EXPECT_EQ(seen("turned.png", png), expected);
  EXPECT_NE(seen("plain.jpg", jpeg), expected);
}

TEST_F(ImageRun, HarmlessHeaderWarningsDoNotCountAsBroken) {
  const auto files =
      harmless_changes(to_jpeg(make_image(40, 40, [](int, int, int) { return 20; }), Chroma::full));
  for (size_t file = 0; file < files.size(); ++file)
    for (const std::string part : {"train/", "val/"})
      write(join(part, "dark/camera", file, ".jpg"), files[file]);
  const auto outcome = train("--epochs 1 --max-broken 0");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, Not(HasSubstr(".jpg")));
}

// How often each file of a folder is opened during `work`.
template <typename Work>
std::map<std::string, int> opened_in(const std::string& folder, const Work& work) {
  const int watch = inotify_init1(IN_NONBLOCK);
  EXPECT_GE(inotify_add_watch(watch, folder.c_str(), IN_OPEN), 0);
  work();
  std::map<std::string, int> counts;
  alignas(inotify_event) char events[1 << 16];
  for (ssize_t size; (size = read(watch, events, sizeof events)) > 0;)
    for (ssize_t place = 0; place < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events + place);
      if (event->len > 0) ++counts[event->name];
      place += static_cast<ssize_t>(sizeof *event + event->len);
    }
  close(watch);
  return counts;
}

TEST_F(ImageRun, ReportLoadsEachImageOnceAndShowsAllClasses) {
  ASSERT_EQ(train("--steps 1").code, 0);
  const auto counts = opened_in(run_path() + "/../val/dark", [this] {
    const auto outcome = run("report " + run_path());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  });
  EXPECT_EQ(counts.size(), static_cast<size_t>(kImages));
  for (const auto& [name, count] : counts) EXPECT_EQ(count, 1) << name;
  const auto page = read_file(run_path() + "/report.html");
  for (const char* name : {"dark", "light"})
    EXPECT_THAT(page, HasSubstr(join("<img alt=\"", name, "\"")));
}

TEST_F(ImageRun, RefusesToResumeWithMoreImages) {
  ASSERT_EQ(train("--steps 2").code, 0);
  write("train/dark/more.png", picture(50));
  const auto outcome = train("--steps 4 --resume auto");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err,
              HasSubstr(join("was trained on ", 2 * kImages, " samples, but the data now has ",
                             2 * kImages + 1, "; use the same data")));
}

TEST_F(ImageRun, NamesABrokenImageAndContinues) {
  const auto broken = damage("train/light/0.png");
  const auto trained = train("--steps 2 --max-broken 0.1");
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr(broken + ": is neither"));

  const auto unseen = damage("val/dark/3.png");
  const auto evaluated = run("eval " + run_path() + " --max-broken 0.1");
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.err, HasSubstr(unseen + ": is neither"));
  EXPECT_THAT(evaluated.err, Not(HasSubstr(broken)));
}

TEST_F(ImageRun, StopsAboveMaxBrokenAndResumesWithALargerOne) {
  ASSERT_EQ(train("--steps 2").code, 0);
  const auto broken = damage("train/light/0.png");

  for (const std::string share : {"", " --max-broken 0", " --max-broken 0.08"}) {
    const auto stopped = train("--steps 4 --resume auto" + share);
    EXPECT_EQ(stopped.code, 1) << share;
    EXPECT_THAT(stopped.err,
                HasSubstr("1 of 12 images (8.33333 %) are broken, expected at most 0 (repair "
                          "or remove them, or raise --max-broken); the first: " +
                          broken));
  }
  const auto evaluated = run("eval " + run_path() + " --max-broken 0.6");
  EXPECT_EQ(evaluated.code, 2);
  EXPECT_THAT(evaluated.err, HasSubstr("--max-broken: expected 0 to 0.5, got 0.6"));

  const auto resumed = train("--steps 4 --resume auto --max-broken 0.1");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resumed after step 2"));
}

}  // namespace
}  // namespace translution
