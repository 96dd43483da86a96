#include "translution/data/ply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/idx_files.h"
#include "tests/data/ply_files.h"
#include "translution/core/random.h"

namespace translution {
namespace {

using ::testing::ElementsAre;
using testing::message_of;
using testing::number_bytes;
using testing::ply_bytes;

// Two vertices between other elements, with lists before and within them.
constexpr const char* kHeader =
    "comment two points\n"
    "element camera 1\nproperty list uchar float view\nproperty double zoom\n"
    "element vertex 2\nproperty float x\nproperty double y\nproperty short z\n"
    "property list int ushort edges\nproperty uchar red\nproperty int number\n"
    "element face 1\nproperty list uint int vertex_indices\n";
constexpr const char* kAscii =
    "2 0.5 1.5 3\n"
    "1 2 -3 0 255 70000\n"
    "3 2.25 -3 2 9 65535 51 -1\n"
    "3 0 1 1\n";

std::string binary_body(bool big) {
  const auto of = [&](auto number) { return number_bytes(number, big); };
  return of(uint8_t{2}) + of(0.5f) + of(1.5f) + of(3.0) + of(1.0f) + of(2.0) + of(int16_t{-3}) +
         of(int32_t{0}) + of(uint8_t{255}) + of(int32_t{70000}) + of(3.0f) + of(2.25) +
         of(int16_t{-3}) + of(int32_t{2}) + of(uint16_t{9}) + of(uint16_t{65535}) +
         of(uint8_t{51}) + of(int32_t{-1}) + of(uint32_t{3}) + of(int32_t{0}) + of(int32_t{1}) +
         of(int32_t{1});
}

std::vector<std::string> files() {
  return {ply_bytes("ascii", kHeader, kAscii),
          ply_bytes("binary_little_endian", kHeader, binary_body(false)),
          ply_bytes("binary_big_endian", kHeader, binary_body(true))};
}

TEST(Ply, ReadsTheSameFromEveryFormat) {
  for (const auto& bytes : files()) {
    EXPECT_THAT(parse_ply_header(bytes, "a.ply").features(), ElementsAre("red", "number"));
    const auto cloud = parse_ply(bytes, "a.ply", {"number", "red"});
    EXPECT_EQ(cloud.axes, 3);
    EXPECT_EQ(cloud.channels, 2);
    EXPECT_THAT(cloud.positions, ElementsAre(-1, -0.125, 0, 1, 0.125, 0));
    EXPECT_THAT(cloud.features, ElementsAre(70000, 1, -1, 0.2f));
  }
}

TEST(Ply, PointsWithoutPropertiesHaveAFeatureOfOne) {
  const auto cloud = parse_ply(testing::ascii_ply({"1 2 3", "1 2 4"}), "a.ply", {});
  EXPECT_EQ(cloud.channels, 1);
  EXPECT_THAT(cloud.features, ElementsAre(1, 1));
}

TEST(Ply, LargeCoordinatesKeepTheirPrecision) {
  auto bytes = ply_bytes("ascii",
                         "element vertex 2\nproperty double x\nproperty double y\n"
                         "property double z\n",
                         "5000000.25 0 0\n5000000.75 0 0\n");
  EXPECT_THAT(parse_ply(bytes, "a.ply", {}).positions, ElementsAre(-0.25, 0, 0, 0.25, 0, 0));
}

TEST(Ply, AcceptsCarriageReturnsAndBlankLines) {
  const auto whole = files()[0];
  std::string bytes;
  for (const char letter : whole) bytes += letter == '\n' ? "\r\n" : std::string(1, letter);
  EXPECT_EQ(parse_ply(bytes + "\r\n\n", "a.ply", {}).size(), 2);
}

struct WrongPly {
  const char* header;  // behind the line "format"
  const char* body;
  const char* message;
};

constexpr const char* kXyz =
    "element vertex 1\nproperty float x\nproperty float y\nproperty int z\n";

TEST(Ply, ReportsEveryMistakeWithItsPlace) {
  const WrongPly wrong[] = {
      {"vertex 1\n", "",
       ":3: expected format, element, property, comment or end_header, got 'vertex'"},
      {"format ascii 1.0\n", "", ":3: a second line 'format'"},
      {"element vertex\n", "", ":3: expected 'element NAME COUNT'"},
      {"element vertex -1\n", "", ":3: expected a count from 0 to 4294967296, got '-1'"},
      {"element vertex 99999999999999999999\n", "",
       ":3: expected a count from 0 to 4294967296, got '99999999999999999999'"},
      {"element a 1\nelement a 1\n", "", ":4: a second element 'a'"},
      {"property float x\n", "", ":3: a property before the first element"},
      {"element a 1\nproperty float\n", "",
       ":4: expected 'property TYPE NAME' or 'property list TYPE TYPE NAME'"},
      {"element a 1\nproperty real x\n", "",
       ":4: unknown type 'real'; expected char, uchar, short, ushort, int, uint, float or double"},
      {"element a 1\nproperty list float int x\n", "",
       ":4: expected a whole type for the length of a list"},
      {"element a 1\nproperty int x\nproperty int x\n", "", ":5: a second property 'x'"},
      {"element face 1\nproperty int x\n", "1\n", ": has no element 'vertex'"},
      {"element face 1\nelement vertex 0\n", "", ": element 'face' has no properties"},
      {"element vertex 1\nproperty float x\nproperty float y\n", "1 2\n",
       ": the vertices have no property 'z'"},
      {"element vertex 0\nproperty float x\nproperty float y\nproperty float z\n", "",
       ": has no vertices; expected at least one"},
      {kXyz, "",
       ": element 'vertex' has 1 rows, but the file has only 0 bytes left; is it "
       "truncated?"},
      {kXyz, "\n\n", ": ends before all values that its header declares; is it truncated?"},
      {kXyz, "1 2\n", ":8: expected more than 2 values"},
      {kXyz, "1 2 3 4\n", ":8: expected 3 values, got 4"},
      {kXyz, "1 two 3\n", ":8: expected a number, got 'two'"},
      {kXyz, "1 nan 3\n", ":8: expected a finite y, got nan"},
      {kXyz, "1 2 3.5\n", ":8: expected a whole number from -2147483648 to 2147483647, got '3.5'"},
      {kXyz, "1 2 3\n\n4\n",
       ":10: expected the end of the file, got more lines than its header declares"}};
  for (const auto& [header, body, message] : wrong) {
    const auto bytes = ply_bytes("ascii", header, body);
    EXPECT_EQ(message_of<std::runtime_error>([&, n = &bytes] { parse_ply(*n, "a.ply", {}); }),
              std::string("a.ply") + message);
  }
  for (const char* start : {"", "PLY\n", "ply", "plyx\n"})
    EXPECT_EQ(message_of<std::runtime_error>([&, s = start] { parse_ply_header(s, "a.ply"); }),
              "a.ply: is not a PLY file: expected a first line 'ply'");
  const auto refusal = [](const char* bytes) {
    return message_of<std::runtime_error>([=] { parse_ply_header(bytes, "a"); });
  };
  EXPECT_EQ(refusal("ply\nformat ascii 1.0\n"),
            "a: the PLY header has no line 'end_header'; is the file truncated?");
  EXPECT_EQ(refusal("ply\nformat ascii 2.0\n"),
            "a:2: expected 'format ascii 1.0', 'format binary_little_endian 1.0' or 'format "
            "binary_big_endian 1.0'");
}

TEST(Ply, ReportsWrongBinaryBodies) {
  const auto refusal = [](const std::string& header, const std::string& body) {
    return message_of<std::runtime_error>(
        [&] { parse_ply(ply_bytes("binary_big_endian", header, body), "a.ply", {}); });
  };
  const std::string list = std::string("element face 1\nproperty list char int i\n") + kXyz;
  EXPECT_EQ(refusal(list, "\xff" + std::string(16, '\0')),
            "a.ply: byte 151: expected a list of 0 or more values, got -1");
  EXPECT_EQ(refusal(list, "\x7f" + std::string(16, '\0')),
            "a.ply: byte 151: a list of 127 values goes beyond the end of the file");
  EXPECT_EQ(refusal(kXyz, std::string(13, '\0')),
            "a.ply: byte 122: expected the end of the file, got 1 byte more than the header "
            "declares");
  EXPECT_EQ(refusal(kXyz, std::string(11, '\0')),
            "a.ply: byte 118: the file ends in the values; is it truncated?");
  EXPECT_EQ(refusal(kXyz, std::string("\x7f\x80\0\0", 4) + std::string(8, '\0')),
            "a.ply: byte 114: expected a finite x, got inf");
}

TEST(PlyDamage, TruncatedBinaryFilesAreRefused) {
  for (const auto& whole : {files()[1], files()[2]})
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_THROW(parse_ply(whole.substr(0, size), "a.ply", {}), std::runtime_error) << size;
}

TEST(PlyDamage, IsRefusedOrGivesFinitePoints) {
  Random random({7});
  for (const auto& whole : files())
    for (int n = 0; n < 4000; ++n) {
      std::string bytes = whole;
      for (int change = 0; change < 1 + n % 3; ++change)
        bytes[random.below(static_cast<int64_t>(bytes.size()))] =
            static_cast<char>(random.below(256));
      try {
        const auto cloud = parse_ply(bytes, "a.ply", parse_ply_header(bytes, "a.ply").features());
        for (const float value : cloud.positions) ASSERT_TRUE(std::isfinite(value));
        ASSERT_EQ(static_cast<int64_t>(cloud.features.size()), cloud.size() * cloud.channels);
      } catch (const std::runtime_error&) {
      }
    }
}

}  // namespace
}  // namespace translution
