#include "translution/report/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "translution/core/random.h"

namespace translution {
namespace {

using testing::ElementsAre;

// True for 1, 2 or 5 times a power of ten.
bool is_round(double step) {
  const double leading = step / std::pow(10.0, std::floor(std::log10(step) + 1e-9));
  for (const double expected : {1, 2, 5})
    if (std::abs(leading - expected) < 1e-6) return true;
  return false;
}

void expect_good_axis(double low, double high, const AxisOptions& options) {
  SCOPED_TRACE(testing::Message() << "from " << low << " to " << high << " log " << options.log);
  const Axis axis(low, high, options);
  const auto& ticks = axis.ticks();
  ASSERT_GE(ticks.size(), options.round ? 2u : 1u);
  EXPECT_LE(ticks.size(), (options.log ? 2 : 1) * options.most_ticks + 3u);
  for (size_t i = 0; i < ticks.size(); ++i) {
    EXPECT_TRUE(i == 0 || ticks[i] > ticks[i - 1]);
    EXPECT_TRUE(!options.log || is_round(ticks[i])) << ticks[i];
  }
  EXPECT_TRUE(options.log || ticks.size() < 3 || is_round(ticks[1] - ticks[0]));
  for (const double value : {low, high}) {
    EXPECT_GE(axis.fraction(value), -1e-6);
    EXPECT_LE(axis.fraction(value), 1 + 1e-6);
  }
  const auto texts = axis.tick_texts();
  EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()).size(), ticks.size());
}

TEST(Axis, TicksAreRoundAndCoverTheValues) {
  Random random({1});
  for (int i = 0; i < 5000; ++i) {
    const double size = std::pow(10.0, random.uniform(-12, 12));
    const double low = random.uniform(-1, 1) * size, high = low + random.uniform(0.001, 2) * size;
    AxisOptions options;
    options.most_ticks = 3 + random.below(8);
    options.round = random.chance(0.5);
    expect_good_axis(low, high, options);
    options.log = true;
    options.round = true;
    expect_good_axis(size, size * std::pow(10.0, random.uniform(0, 9)), options);
  }
}

TEST(Axis, WidensARangeOfEqualValues) {
  for (const double value : {0.0, 1.0, -3.0, 0.1, 1e-300, 5e-324, 1e99, -1e99, 1e15})
    expect_good_axis(value, value, {});
  expect_good_axis(1, std::nextafter(1.0, 2.0), {});
  AxisOptions log;
  log.log = true;
  for (const double value : {1.0, 1e-99, 1e99, 0.3}) expect_good_axis(value, value, log);
}

TEST(Axis, OfCountsHasIntegerTicks) {
  AxisOptions options;
  options.integer = true;
  options.round = false;
  for (int64_t high = 0; high < 300; ++high) {
    const Axis axis(0, high, options);
    for (const double tick : axis.ticks()) EXPECT_EQ(tick, std::round(tick));
  }
}

TEST(Axis, FormatsAllTicksAlike) {
  EXPECT_THAT(Axis(0, 1, {}).tick_texts(), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(Axis(0, 2000, {}).tick_texts(), ElementsAre("0", "500", "1,000", "1,500", "2,000"));
  EXPECT_THAT(Axis(0, 45000, {}).tick_texts(), ElementsAre("0", "10k", "20k", "30k", "40k", "50k"));
  EXPECT_THAT(Axis(0, 2.5e6, {}).tick_texts(),
              ElementsAre("0", "0.5M", "1.0M", "1.5M", "2.0M", "2.5M"));
  EXPECT_THAT(Axis(0, 3e-4, {}).tick_texts(),
              ElementsAre("0", "0.5e-4", "1.0e-4", "1.5e-4", "2.0e-4", "2.5e-4", "3.0e-4"));
  EXPECT_THAT(Axis(-2, 2, {}).tick_texts(), ElementsAre("-2", "-1", "0", "1", "2"));
  AxisOptions log;
  log.log = true;
  EXPECT_THAT(Axis(0.03, 2, log).tick_texts(),
              ElementsAre("0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"));
  EXPECT_THAT(Axis(1, 1e6, log).tick_texts(),
              ElementsAre("1", "10", "100", "1000", "10k", "100k", "1M"));
}

TEST(ValueText, HasFourDigitsOrAllOfAnInteger) {
  EXPECT_EQ(value_text(0.123456), "0.1235");
  EXPECT_EQ(value_text(1234567), "1,234,567");
  EXPECT_EQ(value_text(-1000), "-1,000");
  EXPECT_EQ(value_text(0), "0");
  EXPECT_EQ(value_text(NAN), "nan");
  EXPECT_EQ(value_text(std::numeric_limits<double>::infinity()), "inf");
}

}  // namespace
}  // namespace translution
