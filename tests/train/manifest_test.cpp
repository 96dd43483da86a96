#include "translution/train/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/process.h"
#include "translution/core/random.h"
#include "translution/io/checksum.h"

namespace translution::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Manifest a_manifest() {
  return {1234,
          true,
          {5, checksum_of("model")},
          {int64_t{1} << 40, checksum_of("optimizer")},
          {{"epoch", 3}, {"name", "größe\n\"x\""}, {"losses", {0.1, 1e-300, -0.0}}}};
}

TEST(Manifest, ReadsBackTheSame) {
  const auto expected = a_manifest();
  const auto got = parse_manifest(format_manifest(expected));
  EXPECT_EQ(got.step, expected.step);
  EXPECT_EQ(got.best, expected.best);
  EXPECT_EQ(got.model.bytes, expected.model.bytes);
  EXPECT_EQ(got.model.checksum, expected.model.checksum);
  EXPECT_EQ(got.optimizer.bytes, expected.optimizer.bytes);
  EXPECT_EQ(got.optimizer.checksum, expected.optimizer.checksum);
  EXPECT_EQ(got.state, expected.state);
  EXPECT_TRUE(nlohmann::json::parse(format_manifest(expected)).contains("state"));
}

TEST(Manifest, ReadsBackTheSameBitsOfNumbers) {
  auto manifest = a_manifest();
  Random random({5});
  std::vector<double> numbers = {std::numeric_limits<double>::denorm_min(),
                                 std::numeric_limits<double>::max(), -0.0};
  for (int n = 0; n < 1000; ++n)
    numbers.push_back(random.normal() * std::exp(random.normal() * 99));
  manifest.state = {{"numbers", numbers},
                    {"most", std::numeric_limits<uint64_t>::max()},
                    {"least", std::numeric_limits<int64_t>::min()}};
  const auto state = parse_manifest(format_manifest(manifest)).state;
  EXPECT_EQ(state.at("most").get<uint64_t>(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(state.at("least").get<int64_t>(), std::numeric_limits<int64_t>::min());
  for (size_t n = 0; n < numbers.size(); ++n) {
    EXPECT_EQ(state.at("numbers")[n].get<double>(), numbers[n]);
    EXPECT_EQ(std::signbit(state.at("numbers")[n].get<double>()), std::signbit(numbers[n]));
  }
}

TEST(Manifest, RefusesAStateThatWouldNotReadBack) {
  auto manifest = a_manifest();
  for (const double number : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    manifest.state = {{"x", {number}}};
    EXPECT_THAT(message_of<std::invalid_argument>([&] { format_manifest(manifest); }),
                HasSubstr("expected finite numbers"));
  }
  manifest.state = {{"x", "\xff"}};
  EXPECT_THAT(message_of<std::invalid_argument>([&] { format_manifest(manifest); }),
              HasSubstr("UTF-8"));
}

TEST(Manifest, DetectsAnyFlippedBitAndAnyTruncation) {
  const auto intact = format_manifest(a_manifest());
  for (size_t bit = 0; bit < 8 * intact.size(); ++bit) {
    auto text = intact;
    text[bit / 8] ^= 1 << bit % 8;
    EXPECT_THAT(message_of([&] { parse_manifest(text); }), HasSubstr("is damaged")) << bit;
  }
  for (size_t length = 0; length < intact.size(); ++length)
    EXPECT_THROW(parse_manifest(intact.substr(0, length)), std::runtime_error) << length;
}

// As a hostile writer would forge it.
TEST(Manifest, RefusesInvalidContentWithAValidChecksum) {
  const std::string sum = checksum_of("");
  const auto with = [&](const std::string& version, const std::string& step,
                        const std::string& bytes, const std::string& digits) {
    const std::string file = R"({"bytes":)" + bytes + R"(,"xxh3_128":)" + digits + "}";
    return R"(","format":"translution checkpoint","version":)" + version + R"(,"step":)" + step +
           R"(,"best":false,"files":{"model.safetensors":)" + file +
           R"(,"optimizer.safetensors":)" + file + R"(},"state":null})";
  };
  const std::string good = "\"" + sum + "\"";
  EXPECT_EQ(parse_manifest(seal_manifest(with("1", "7", "0", good))).step, 7);
  const std::pair<std::string, const char*> invalid[] = {
      {"", "not JSON"},
      {"\"}", "has no entry format"},
      {R"(","format":"other"})", "is not a manifest"},
      {R"(","format":7})", "is not a manifest"},
      {R"(","checksum":"twice"})", "has the key 'checksum' twice"},
      {with("2", "7", "0", good), "expected format version 1, got 2"},
      {with("1", "-7", "0", good), "step: expected a whole number"},
      {with("1", "7.5", "0", good), "step: expected a whole number"},
      {with("1", "9223372036854775808", "0", good), "step: expected a whole number"},
      {with("1", "7", "null", good), "bytes: expected a whole number"},
      {with("1", "7", "0", "\"abc\""), "expected 32 hexadecimal digits as xxh3_128, got 'abc'"},
      {with("1", "7", "0", "{}"), "expected a string xxh3_128"},
      {with("1", "7", "0", good + R"(,"xxh3_128":"")"), "has the key 'xxh3_128' twice"},
      {"\",\"x\":" + std::string(100000, '['), "nested more than 64 levels deep"},
      {with("1", "7", "1e999", good), "out of range"},
  };
  for (const auto& [rest, expected] : invalid) {
    const auto message = message_of([&, text = &rest] { parse_manifest(seal_manifest(*text)); });
    EXPECT_THAT(message, HasSubstr(expected));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace translution::testing
