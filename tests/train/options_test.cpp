#include "translution/train/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace translution {
namespace {

TEST(LearningRate, RisesToLrAndFallsAlongHalfACosine) {
  TrainOptions options;
  options.lr = 2, options.min_lr = 0.5, options.warmup = 4;
  EXPECT_DOUBLE_EQ(learning_rate(options, 0, 104), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(options, 3, 104), 2);
  EXPECT_DOUBLE_EQ(learning_rate(options, 4, 104), 2);
  EXPECT_NEAR(learning_rate(options, 54, 104), 1.25, 1e-12);
  EXPECT_NEAR(learning_rate(options, 104, 104), 0.5, 1e-12);
  options.schedule = Schedule::constant;
  EXPECT_DOUBLE_EQ(learning_rate(options, 54, 104), 2);
}

TEST(TrainSettings, ReadBackTheSame) {
  TrainOptions options;
  options.lr = 3e-4, options.batch = 17, options.schedule = Schedule::constant;
  const auto texts = texts_of(train_settings(), options);
  TrainOptions again;
  set_all(train_settings(), {texts.begin(), texts.end()}, again);
  EXPECT_EQ(texts_of(train_settings(), again), texts);
  EXPECT_EQ(again.lr, 3e-4);
}

TEST(TrainSettings, RefuseInvalidValues) {
  const auto message = [](const std::string& name, const std::string& text) -> std::string {
    TrainOptions options;
    try {
      set_all(train_settings(), {{name, text}}, options, "--");
      options.check();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("batch", "0"), "--batch: expected 1 to 1099511627776, got 0");
  EXPECT_EQ(message("lr", "fast"), "--lr: expected a number, got 'fast'");
  EXPECT_EQ(message("lr", "nan"), "--lr: expected a number, got 'nan'");
  EXPECT_EQ(message("accumulate", "300"), "accumulate: expected at most the batch, 256, got 300");
  EXPECT_EQ(message("min-lr", "1"), "min-lr: expected at most lr, 0.001, got 1");
  EXPECT_EQ(message("beta2", "1"), "beta2: expected less than 1, got 1");
  EXPECT_EQ(message("schedule", "cosin"), "unknown schedule 'cosin'; did you mean 'cosine'?");
}

}  // namespace
}  // namespace translution
