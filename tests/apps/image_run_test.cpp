// Folders of images through the program: trained on, evaluated, and what happens to broken ones.

#include <gmock/gmock.h>

#include "tests/apps/program.h"
#include "tests/data/pictures.h"
#include "translution/core/error.h"

namespace translution {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kImages = 6;  // of each class

// Two classes of dark and bright images; "light/0.png" is whole or not.
class ImageRun : public ::testing::Test {
 protected:
  ImageRun() {
    for (const std::string split : {"train/", "val/"})
      for (int i = 0; i < kImages; ++i) {
        folder_.write(join(split, "dark/", i, ".png"), to_png(flat_image(40, 40, 10 + i)));
        folder_.write(join(split, "light/", i, ".png"), to_png(flat_image(40, 40, 230 + i)));
      }
  }

  std::string damage(const std::string& name) const { return folder_.write(name, "no image"); }
  void add(const std::string& name) const { folder_.write(name, to_png(flat_image(40, 40, 50))); }
  std::string run_path() const { return folder_.path() + "/run"; }
  Outcome train(const std::string& more) const {
    return run("train --threads 1 --data images:" + folder_.path() +
               " --model vit-tiny/16 --image-size 32 --batch 12 --save-every 1 --out " +
               run_path() + " " + more);
  }

 private:
  const TemporaryFolder folder_;
};

TEST_F(ImageRun, TellsDarkFromLight) {
  const auto outcome = train("--steps 30 --lr 0.003");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto evaluated = run("eval " + run_path() + " --json");
  const auto results = nlohmann::json::parse(evaluated.out).at("results").at("val");
  EXPECT_EQ(results.at("count"), 2 * kImages);
  EXPECT_EQ(results.at("top1"), 1.0);
}

TEST_F(ImageRun, DoesNotGoOnWithMoreImages) {
  ASSERT_EQ(train("--steps 2").code, 0);
  add("train/dark/more.png");
  const auto outcome = train("--steps 4 --resume auto");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err,
              HasSubstr(join("has learned from ", 2 * kImages, " samples, and the data ", "has ",
                             2 * kImages + 1, " now; use the same data")));
}

TEST_F(ImageRun, NamesABrokenImageAndGoesOn) {
  const auto broken = damage("train/light/0.png");
  const auto trained = train("--steps 2");
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr(broken + ": is neither"));

  const auto unseen = damage("val/dark/3.png");
  const auto evaluated = run("eval " + run_path());
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.err, HasSubstr(unseen + ": is neither"));
  EXPECT_THAT(evaluated.err, Not(HasSubstr(broken)));
}

TEST_F(ImageRun, StopsAtTheShareThatIsSetAndGoesOnWithAnother) {
  ASSERT_EQ(train("--steps 2").code, 0);
  const auto broken = damage("train/light/0.png");

  const auto stopped = train("--steps 4 --resume auto --max-broken 0");
  EXPECT_EQ(stopped.code, 1);
  EXPECT_THAT(stopped.err, HasSubstr("1 of 12 images (8.33333 %) are broken, allowed are 0 (raise "
                                     "max-broken, or mend them); the first: " +
                                     broken));
  const auto evaluated = run("eval " + run_path() + " --max-broken 0.6");
  EXPECT_EQ(evaluated.code, 2);
  EXPECT_THAT(evaluated.err, HasSubstr("--max-broken wants 0 to 0.5, got 0.6"));

  const auto resumed = train("--steps 4 --resume auto --max-broken 0.1");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("going on after step 2"));
}

}  // namespace
}  // namespace translution
