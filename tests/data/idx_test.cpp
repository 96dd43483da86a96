#include "translution/data/idx.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "tests/data/idx_files.h"
#include "translution/core/random.h"
#include "translution/data/labelled_images.h"

namespace translution {
namespace {

using ::testing::AllOf;
using testing::gzip;
using ::testing::HasSubstr;
using testing::idx_bytes;
using testing::message_of;
using ::testing::StartsWith;

constexpr size_t kImageBytes = 3 * 5 * 7;
const std::string& good() {
  static const std::string bytes = idx_bytes({3, 5, 7}, kImageBytes, 256);
  return bytes;
}

std::string refusal(const std::string& bytes) {
  const auto message = message_of<std::runtime_error>([&] { parse_idx(bytes, "F"); });
  EXPECT_THAT(message, StartsWith("F: "));
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

std::string with_byte(std::string bytes, size_t at, int value) {
  bytes[at] = static_cast<char>(value);
  return bytes;
}

TEST(ParseIdx, ReadsSizesAndValuesPlainAndGzip) {
  for (const auto& bytes : {good(), gzip(good())}) {
    const auto array = parse_idx(bytes, "F");
    EXPECT_EQ(array.sizes, (std::vector<int64_t>{3, 5, 7}));
    ASSERT_EQ(array.values.size(), kImageBytes);
    for (size_t i = 0; i < kImageBytes; ++i) EXPECT_EQ(array.values[i], i % 256);
  }
}

TEST(ParseIdx, ReadsContentShorterThanTheLongestHeader) {
  for (size_t count = 1; count < 20; ++count) {
    const auto bytes = idx_bytes({static_cast<uint32_t>(count)}, count);
    EXPECT_EQ(parse_idx(bytes, "F").values, parse_idx(gzip(bytes), "F").values);
    EXPECT_EQ(parse_idx(bytes, "F").values.size(), count);
    EXPECT_THAT(refusal(gzip(bytes + "x")), HasSubstr("has more than the"));
  }
}

TEST(ParseIdx, RefusesEveryTruncationAndTrailingBytes) {
  for (const auto& complete : {good(), gzip(good())}) {
    for (size_t length = 0; length < complete.size(); ++length) refusal(complete.substr(0, length));
    refusal(complete + '\0');
    refusal(complete + complete);
  }
  for (size_t length = 0; length < good().size(); ++length) refusal(gzip(good().substr(0, length)));
  EXPECT_THAT(refusal(gzip(good() + "x")), HasSubstr("has more than the 105 bytes (3x5x7)"));
  EXPECT_THAT(refusal(gzip(good()) + "x"), HasSubstr("1 bytes after the end of the gzip data"));
}

TEST(ParseIdx, RefusesEveryFlippedBitOfThePlainHeader) {
  for (size_t bit = 0; bit < 16 * 8; ++bit) {
    auto bytes = good();
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    refusal(bytes);
  }
}

// A flipped bit in gzip's own header (time, flags that zlib skips) can leave the content intact.
TEST(ParseIdx, NeverReturnsWrongValuesFromDamagedGzip) {
  const auto packed = gzip(good());
  const auto values = parse_idx(packed, "F").values;
  int refused = 0;
  for (size_t bit = 0; bit < packed.size() * 8; ++bit) {
    auto bytes = packed;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    try {
      EXPECT_EQ(parse_idx(bytes, "F").values, values);
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(packed.size() - 10) * 8 * 99 / 100);
}

TEST(ParseIdx, SaysWhatIsWrongWithAHeader) {
  EXPECT_THAT(refusal(""), HasSubstr("too short"));
  EXPECT_THAT(refusal("<html>not found</html>"), HasSubstr("not an IDX file"));
  EXPECT_THAT(refusal(with_byte(good(), 2, 13)), HasSubstr("got type 13"));
  EXPECT_THAT(refusal(with_byte(good(), 3, 0)), HasSubstr("in the IDX header, got 0"));
  EXPECT_THAT(refusal(with_byte(good(), 3, 255)), HasSubstr("in the IDX header, got 255"));
  EXPECT_THAT(refusal(idx_bytes({3, 0, 7}, 0)), HasSubstr("size of 0"));
  EXPECT_THAT(refusal(idx_bytes({3, 5, 8}, kImageBytes)),
              HasSubstr("expected 120 bytes (3x5x8) after the IDX header, got 105"));
}

TEST(ParseIdx, RefusesWrongSizesWithoutAllocatingMemoryForThem) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const std::vector<std::vector<uint32_t>> wrong{
      {1u << 31},
      {~0u},
      {1u << 31, 1u << 31, 2},
      {~0u, ~0u, ~0u, ~0u},
      {1u << 16, 1u << 16, 1u << 16, 1u << 16},
      {1u << 30, 4},
      {60000, 28, 28000},
  };
  for (const auto& sizes : wrong) {
    refusal(idx_bytes(sizes, 100));
    refusal(gzip(idx_bytes(sizes, 100)));
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 16 << 10) << "KiB";
}

TEST(ParseIdx, BoundsADecompressionBombByItsHeader) {
  const auto bomb = gzip(idx_bytes({10}, 64 << 20, 1));
  EXPECT_LT(bomb.size(), 100000u);
  EXPECT_THAT(refusal(bomb), HasSubstr("has more than the 10 bytes"));
  const auto declared = gzip(idx_bytes({64 << 20}, 64 << 20, 1));
  EXPECT_THAT(refusal(declared), HasSubstr("too many for"));
}

TEST(ParseIdx, SurvivesRandomDamage) {
  const auto plain = good(), packed = gzip(good());
  for (uint64_t round = 0; round < 3000; ++round) {
    Random random({round});
    auto bytes = round % 2 == 0 ? plain : packed;
    for (int64_t edits = 1 + random.below(6); edits > 0; --edits)
      bytes[random.below(static_cast<int64_t>(bytes.size()))] =
          static_cast<char>(random.below(256));
    bytes.resize(bytes.size() - (random.chance(0.3) ? random.below(20) : 0));
    try {
      const auto array = parse_idx(bytes, "F");
      int64_t product = 1;
      for (const int64_t size : array.sizes) product *= size;
      EXPECT_EQ(product, static_cast<int64_t>(array.values.size()));
    } catch (const std::runtime_error&) {
    }
  }
}

TEST(ReadIdx, FindsEverySpellingPlainAndGzip) {
  const testing::Directory directory;
  testing::write_split(directory, 4, 6);
  const auto train = read_idx(directory.path, IdxPart::train);
  const auto test = read_idx(directory.path, IdxPart::t10k);
  EXPECT_EQ(train.pixels.sizes(), (std::vector<int64_t>{30, 4, 6}));
  EXPECT_EQ(test.pixels.sizes(), (std::vector<int64_t>{20, 4, 6}));
  EXPECT_TRUE(torch::equal(train.labels, torch::arange(30).remainder(10)));
  EXPECT_TRUE(
      torch::equal(test.pixels.flatten().to(torch::kInt64), torch::arange(20 * 24).remainder(241)));
}

TEST(ReadIdx, SaysHowToFetchAMissingFile) {
  const testing::Directory directory;
  testing::write_split(directory);
  directory.remove("t10k-labels-idx1-ubyte.gz");
  const auto read = [](const std::string& path, IdxPart part) {
    return message_of<std::runtime_error>([&] { read_idx(path, part); });
  };
  EXPECT_THAT(read(directory.path, IdxPart::t10k),
              AllOf(StartsWith(directory.path + ": has no t10k-labels-idx1-ubyte"),
                    HasSubstr("scripts/fetch-mnist " + directory.path)));
  EXPECT_THAT(read("/nowhere", IdxPart::train),
              HasSubstr("scripts/fetch-mnist /nowhere fetches MNIST, "
                        "scripts/fetch-fashion-mnist /nowhere Fashion-MNIST"));
  std::filesystem::create_directory(directory.path + "/t10k-labels-idx1-ubyte");
  EXPECT_THAT(read(directory.path, IdxPart::t10k), HasSubstr("is not a regular file"));
}

TEST(JoinIdx, RefusesImagesAndLabelsThatDoNotMatch) {
  const IdxArray images{{3, 2, 2}, std::vector<uint8_t>(12)}, labels{{3}, {0, 9, 5}};
  EXPECT_EQ(join_idx(images, "I", labels, "L").size(), 3);
  const auto refused = [](const IdxArray& i, const IdxArray& l) {
    return message_of<std::runtime_error>([&] { join_idx(i, "I", l, "L"); });
  };
  EXPECT_EQ(refused(images, {{2}, {0, 9}}), "L: has 2 labels, but I has 3 images");
  EXPECT_EQ(refused(images, {{3}, {0, 10, 5}}), "L: expected labels from 0 to 9, label 1 is 10");
  EXPECT_THAT(refused(labels, labels), StartsWith("I: expected images"));
  EXPECT_THAT(refused(images, images), StartsWith("L: expected a list of labels"));
}

// Needs Debian's package dataset-fashion-mnist.
TEST(ReadIdx, ReadsFashionMnist) {
  const std::string directory = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << directory << " is not there";
  const auto test = read_idx(directory, IdxPart::t10k);
  EXPECT_EQ(test.pixels.sizes(), (std::vector<int64_t>{10000, 28, 28}));
  EXPECT_TRUE(torch::equal(torch::bincount(test.labels), torch::full({10}, 1000, torch::kInt64)));
}

}  // namespace
}  // namespace translution
