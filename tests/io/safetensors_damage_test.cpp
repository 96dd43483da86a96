// Damaged files and files with wrong headers are refused with a message, or their tensors lie
// within the file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <torch/types.h>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/core/random.h"
#include "translution/io/safetensors.h"
#include "translution/io/strict_json.h"

namespace translution::testing {

using namespace detail;

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string with_length(uint64_t length, const std::string& rest) {
  std::string bytes;
  for (int byte = 0; byte < 8; ++byte) bytes += static_cast<char>(length >> 8 * byte);
  return bytes + rest;
}

std::string make_file(const std::string& header, int64_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\0'));
}

std::string valid_file() {
  std::string bytes;
  write_safetensors({{"weight", torch::ones({3, 5})},
                     {"mask", torch::ones({3}, torch::kBool)},
                     {"none", torch::ones({0, 2}, torch::kLong)}},
                    {{"format", "pt"}}, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

// Whether the header is accepted. Checks that it is refused with one line, or that the tensors
// cover the rest of the file one after the other.
bool accepts(const std::string& bytes) {
  SafetensorsHeader header;
  const auto size = static_cast<int64_t>(bytes.size());
  try {
    header = parse_safetensors_header(bytes, size);
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    EXPECT_LT(std::string(error.what()).size(), 500u);
    return false;
  }
  int64_t end = 0;
  for (const auto& entry : header.entries) {
    EXPECT_EQ(entry.begin, end);
    end = entry.end;
    int64_t tensor_bytes = byte_size(entry.dtype);
    for (const int64_t side : entry.shape) tensor_bytes *= side;
    EXPECT_EQ(tensor_bytes, entry.end - entry.begin);
  }
  EXPECT_EQ(8 + safetensors_header_length(bytes, size) + end, size);
  return true;
}

TEST(DamagedSafetensors, TruncatedAtEveryByteIsRefused) {
  const auto whole = valid_file();
  const TempDir dir;
  EXPECT_TRUE(accepts(whole));
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(accepts(whole.substr(0, length))) << length;
    put_bytes(dir / "it", whole.substr(0, length));
    EXPECT_THAT(message_of([&] { load_safetensors(dir / "it"); }), HasSubstr(dir / "it: "));
  }
  EXPECT_FALSE(accepts(whole + "x"));
}

TEST(DamagedSafetensors, EveryFlippedBitOfTheHeaderIsRefusedOrHarmless) {
  const auto whole = valid_file();
  const auto end = 8 + safetensors_header_length(whole, static_cast<int64_t>(whole.size()));
  const TempDir dir;
  int64_t harmless = 0;
  for (int64_t bit = 0; bit < 8 * end; ++bit) {
    auto bytes = whole;
    bytes[bit / 8] ^= 1 << bit % 8;
    put_bytes(dir / "it", bytes);
    const bool parsed = accepts(bytes);
    const auto message = message_of([&] { load_safetensors(dir / "it"); });
    EXPECT_TRUE(parsed || !message.empty());
    harmless += message.empty();
  }
  EXPECT_GT(harmless, 0);  // bits of letters in names
  EXPECT_LT(harmless, 8 * end / 4);
}

TEST(DamagedSafetensors, ManyRandomChangesAreRefusedOrHarmless) {
  const auto whole = valid_file();
  for (uint64_t sample = 0; sample < 20000; ++sample) {
    Random random({11, sample});
    auto bytes = whole;
    for (int64_t change = random.below(6); change >= 0; --change) {
      const int64_t at = random.below(static_cast<int64_t>(bytes.size()));
      const int64_t from = random.below(static_cast<int64_t>(whole.size()));
      if (random.chance(0.5))
        bytes[at] = static_cast<char>(random.bits());
      else
        bytes = bytes.substr(0, at) + whole.substr(from, random.below(40)) + bytes.substr(at);
    }
    accepts(bytes);
  }
}

struct WrongHeader {
  const char* header;
  int64_t data_bytes;
  const char* message;
};

TEST(DamagedSafetensors, WrongHeadersAreRefusedWithTheReason) {
  const WrongHeader cases[] = {
      {R"([])", 0, "does not begin with {"},
      {"\xef\xbb\xbf{}", 0, "does not begin with {"},
      {R"( {})", 0, "does not begin with {"},
      {R"({)", 0, "the header is not JSON at byte"},
      {R"({}{})", 0, "the header is not JSON at byte 3"},
      {R"({} x)", 0, "not JSON"},
      {"{\"\xff\":1}", 0, "not JSON"},
      {R"({"a":1e999})", 0, "out of range"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,2]}})", 2,
       "tensor 'a': shape '1' takes 1 bytes, data_offsets give 2"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 2,
       "end at byte 1, the file has 2"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 2,
       "end at byte 3, the file has 2"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2,
       "begins at byte 1, the previous tensor ends at 0"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "tensor 'b' begins at byte 1, the previous tensor ends at 2"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
       2, "begins at byte 0"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
       4, "begins at byte 2"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[2,1]}})", 2,
       "expected [begin, end] with begin <= end"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1,
       "expected [begin, end] with begin <= end"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}})", 1,
       "expected [begin, end] with begin <= end"},
      {R"({"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,0]}})", 0,
       "2^63-1, got '9223372036854775808'"},
      {R"({"a":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,0]}})", 0,
       "2^63-1, got '1e+20'"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[9223372036854775807,9223372036854775808]}})",
       1, "got '9223372036854775808'"},
      {R"({"a":{"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0]}})", 0,
       "has more than 2^63-1 bytes"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
       "has more than 2^63-1 bytes"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}})", 0,
       "has more than 2^63-1 bytes"},
      {R"({"a":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}})",
       5, "the file has 5"},
      {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, "got '-1'"},
      {R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1, "got '1.0'"},
      {R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})", 1, "got '\"1\"'"},
      {R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", 1, "expected an array shape"},
      {R"({"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}})", 8,
       "dtype 'C64' is not supported"},
      {R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", 4,
       "dtype 'f32' is not supported"},
      {R"({"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})", 4, "expected a string dtype"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "expected dtype, shape and data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"offsets":[0,4]}})", 4, "expected an array data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4,
       "expected dtype, shape and"},
      {R"({"a":7})", 0, "expected dtype, shape and data_offsets"},
      {R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1,
       "has the key 'dtype' twice"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       1, "has the key 'a' twice"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", 0, "has the key 'a' twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "has the key '__metadata__' twice"},
      {R"({"__metadata__":{"a":1}})", 0, "__metadata__: expected a string for 'a'"},
      {R"({"__metadata__":["a"]})", 0, "__metadata__: expected an object"},
      {R"({"a":{"b":{"c":[]}}})", 0, "nested more than 3 levels deep"},
      {R"({"a\n\u0000b":7})", 0, "tensor 'a??b': "},
  };
  for (const auto& wrong : cases) {
    const auto bytes = make_file(wrong.header, wrong.data_bytes);
    EXPECT_FALSE(accepts(bytes)) << wrong.header;
    EXPECT_THAT(message_of([&] { parse_safetensors_header(bytes, bytes.size()); }),
                HasSubstr(wrong.message));
  }
}

TEST(DamagedSafetensors, WrongLengthsAreRefused) {
  for (const uint64_t length : {uint64_t{3}, uint64_t{100'000'000}, uint64_t{100'000'001},
                                uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 7})
    EXPECT_FALSE(accepts(with_length(length, "{}"))) << length;
  EXPECT_FALSE(accepts(with_length(0, "")));
  EXPECT_FALSE(accepts(with_length(1, "{}")));
  EXPECT_TRUE(accepts(with_length(2, "{}")));
}

TEST(DamagedSafetensors, ManyDimensionsAndDeepNestingAreRefused) {
  std::string shape = "1";
  for (int side = 1; side < 64; ++side) shape += ",1";
  const auto with_shape = [](const std::string& sides) {
    return make_file(R"({"a":{"dtype":"U8","shape":[)" + sides + R"(],"data_offsets":[0,1]}})", 1);
  };
  EXPECT_TRUE(accepts(with_shape(shape)));
  EXPECT_FALSE(accepts(with_shape(shape + ",1")));
  for (const char* bracket : {"[", "{\"\":"}) {
    std::string deep = "{\"a\":";
    for (int level = 0; level < 100000; ++level) deep += bracket;
    EXPECT_FALSE(accepts(make_file(deep, 0)));
    EXPECT_THROW(check_strict_json(deep, 50), std::runtime_error);
  }
}

TEST(DamagedSafetensors, BoolsOtherThan0And1AreRefused) {
  const TempDir dir;
  auto bytes = valid_file();
  bytes.back() = 2;
  put_bytes(dir / "it", bytes);
  EXPECT_EQ(message_of([&] { load_safetensors(dir / "it"); }),
            dir.path() + "/it: tensor 'mask' is BOOL and has a byte other than 0 and 1");
}

TEST(DamagedSafetensors, DirectoriesMissingFilesAndPipesAreRefused) {
  const TempDir dir;
  EXPECT_EQ(message_of([&] { load_safetensors(dir.path()); }),
            dir.path() + ": is not a regular file");
  EXPECT_EQ(message_of([&] { load_safetensors(dir / "none"); }),
            dir.path() + "/none: cannot be opened: No such file or directory");
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(message_of([&] { load_safetensors(dir / "pipe"); }),
            dir / "pipe" + ": is not a regular file");
}

int64_t status_kilobytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    int64_t kilobytes = 0;
    if (word == field + ":" && file >> kilobytes) return kilobytes;
  }
  return -1;
}

TEST(DamagedSafetensors, SmallFilesNeedLittleMemory) {
  std::string many = "{\"a\":[", names = "{";
  while (many.size() < 1'000'000) many += "[],";
  while (names.size() < 1'000'000) names += "\"" + std::to_string(names.size()) + "\":{},";
  const TempDir dir;
  malloc_trim(0);
  if (!(std::ofstream("/proc/self/clear_refs") << 5).flush())
    GTEST_SKIP() << "cannot reset the peak memory";
  const int64_t before = status_kilobytes("VmRSS");
  for (const auto& header : {many, many + "0]}", names, names + "\"x\":{}}",
                             std::string(R"({"a":{"dtype":"U8","shape":[1099511627776],)"
                                         R"("data_offsets":[0,1099511627776]}})")}) {
    put_bytes(dir / "it", make_file(header, 100));
    EXPECT_THROW(load_safetensors(dir / "it"), std::runtime_error);
  }
  EXPECT_LT(status_kilobytes("VmHWM") - before, 64 * 1024);
}

TEST(InQuotes, StaysOnOneLineAndTruncatesBetweenCharacters) {
  EXPECT_EQ(in_quotes("a\nb\x7f"), "'a?b?'");
  EXPECT_EQ(in_quotes(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(in_quotes(std::string(61, 'x')), "'" + std::string(60, 'x') + "'…");
  EXPECT_EQ(in_quotes(std::string(59, 'x') + "深" + "y"), "'" + std::string(59, 'x') + "'…");
}

}  // namespace
}  // namespace translution::testing
