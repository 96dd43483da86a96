#include "translution/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_fault.h"

namespace translution::testing {
namespace {

using ::testing::HasSubstr;

const std::vector<torch::ScalarType> kTypes = {
    torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16, torch::kLong,
    torch::kInt,    torch::kShort, torch::kChar, torch::kByte,     torch::kBool};

// Compares bits, so that NaNs are compared too.
void expect_same(const torch::Tensor& got, const torch::Tensor& expected, const std::string& name) {
  ASSERT_EQ(got.scalar_type(), expected.scalar_type()) << name;
  ASSERT_EQ(got.sizes(), expected.sizes()) << name;
  ASSERT_TRUE(got.is_contiguous());
  const auto plain = expected.contiguous();
  const auto bytes = [](const torch::Tensor& tensor) {
    return std::string_view(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
  };
  EXPECT_EQ(bytes(got), bytes(plain)) << name;
}

void expect_round_trip(const NamedTensors& tensors, const SafetensorsMetadata& metadata = {}) {
  const TempDir dir;
  save_safetensors(dir / "it.safetensors", tensors, metadata);
  const auto loaded = load_safetensors(dir / "it.safetensors");
  EXPECT_EQ(loaded.metadata, metadata);
  ASSERT_EQ(loaded.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_EQ(loaded.tensors.count(name), 1u) << name;
    expect_same(loaded.tensors.at(name), tensor, name);
  }
}

NamedTensors all_types() {
  NamedTensors tensors;
  for (const auto type : kTypes)
    tensors[c10::toString(type)] = torch::arange(-17, 18).view({5, 7}).to(type);
  return tensors;
}

TEST(Safetensors, RoundTripsEveryTypeAndShape) {
  auto tensors = all_types();
  for (const auto type : kTypes) {
    const std::string name = c10::toString(type);
    tensors[name + " scalar"] = torch::ones({}, type);
    tensors[name + " empty"] = torch::ones({3, 0, 5}, type);
    tensors[name + " odd"] = torch::ones({1, 3, 1, 1}, type);
  }
  expect_round_trip(tensors, {{"format", "pt"}, {"", "empty key"}});
  expect_round_trip({});
  expect_round_trip({{"alone", torch::ones({0})}});
}

TEST(Safetensors, RoundTripsUnusualNamesAndMetadata) {
  expect_round_trip({{"", torch::ones({1})},
                     {"\"quoted\\\"", torch::ones({2})},
                     {"größe.μ.深", torch::ones({3})},
                     {std::string("nul\0l\n\t", 7), torch::ones({4})},
                     {"/../etc", torch::ones({5})},
                     {std::string(5000, 'x'), torch::ones({6})}},
                    {{"\n", "line\nline"}, {"ключ", "значение"}});
}

TEST(Safetensors, RoundTripsNumbersThatAreNotFinite) {
  using Limits = std::numeric_limits<double>;
  const auto odd = torch::tensor({Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(),
                                  -Limits::infinity(), -0.0, Limits::denorm_min(), Limits::max()},
                                 torch::kDouble);
  expect_round_trip({{"odd", odd}, {"odd floats", odd.to(torch::kFloat)}});
}

TEST(Safetensors, AcceptsAnyStridesAndTensorsThatRequireGrad) {
  const auto whole = torch::arange(120, torch::kFloat).view({4, 5, 6});
  expect_round_trip({{"transposed", whole.transpose(0, 2)},
                     {"every other", whole.slice(1, 0, 5, 2)},
                     {"view in the middle", whole[2]},
                     {"expanded", torch::ones({1, 3}).expand({4, 3})},
                     {"parameter", torch::ones({3, 3}).requires_grad_()}});
}

TEST(Safetensors, WritesTheValuesOfNegatedViews) {
  const TempDir dir;
  const auto view = torch::imag(torch::conj(torch::randn({5}, torch::kComplexFloat)));
  ASSERT_TRUE(view.is_neg());
  save_safetensors(dir / "it", {{"view", view}});
  EXPECT_TRUE(torch::equal(load_safetensors(dir / "it").tensors.at("view"), view));
}

TEST(Safetensors, GivesTheSameBytesForTheSameTensorsAndAlignsThem) {
  const TempDir dir;
  save_safetensors(dir / "a", all_types(), {{"k", "v"}});
  save_safetensors(dir / "b", all_types(), {{"k", "v"}});
  const auto bytes = get_bytes(dir / "a");
  EXPECT_EQ(bytes, get_bytes(dir / "b"));
  const auto size = static_cast<int64_t>(bytes.size());
  EXPECT_EQ(safetensors_header_length(bytes, size) % 8, 0);
  for (const auto& entry : parse_safetensors_header(bytes, size).entries)
    EXPECT_EQ(entry.begin % byte_size(entry.dtype), 0) << entry.name;
}

TEST(Safetensors, WritesTheFormatByteForByte) {
  const TempDir dir;
  save_safetensors(dir / "it",
                   {{"b", torch::tensor({1, 2}, torch::kByte)}, {"a", torch::tensor({1.0f})}});
  const std::string header = R"({"a":{"data_offsets":[0,4],"dtype":"F32","shape":[1]},)"
                             R"("b":{"data_offsets":[4,6],"dtype":"U8","shape":[2]}})"
                             "      ";
  ASSERT_EQ(header.size() % 8, 0u) << header.size();
  const std::string length = {static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(get_bytes(dir / "it"), length + header + std::string("\x00\x00\x80\x3f\x01\x02", 6));
}

TEST(Safetensors, RefusesTensorsThatTheFormatCannotStore) {
  const TempDir dir;
  const auto refusal = [&](const NamedTensors& tensors) {
    return message_of<std::invalid_argument>([&] { save_safetensors(dir / "it", tensors); });
  };
  EXPECT_THAT(refusal({{"z", torch::zeros({2}, torch::kComplexFloat)}}),
              HasSubstr("'z': the format has no Complex"));
  EXPECT_THAT(refusal({{"none", {}}}), HasSubstr("'none': expected a dense tensor"));
  EXPECT_THAT(refusal({{"s", torch::ones({2, 2}).to_sparse()}}), HasSubstr("a dense tensor"));
  EXPECT_THAT(refusal({{"__metadata__", torch::ones({2})}}), HasSubstr("__metadata__"));
  EXPECT_THAT(refusal({{"\xff", torch::ones({2})}}), HasSubstr("UTF-8"));
  EXPECT_TRUE(names_in(dir.path()).empty());
}

TEST(Safetensors, LeavesTheOldFileUntouchedWhenTheDiskIsFull) {
  const TempDir dir;
  save_safetensors(dir / "it", {{"a", torch::ones({7})}});
  const auto before = get_bytes(dir / "it");
  for (int64_t call = 1; call <= 5; ++call) {
    set_write_fault({Fault::torn, call});
    EXPECT_THROW(save_safetensors(dir / "it", {{"a", torch::zeros({7})}}), std::runtime_error);
    EXPECT_EQ(get_bytes(dir / "it"), before) << call;
  }
  set_write_fault({});
}

// Reads and writes the format in plain Python, without packages.
constexpr const char* kPython = R"(
import json, struct, sys
data = open(sys.argv[1], 'rb').read()
n = struct.unpack('<Q', data[:8])[0]
assert n % 8 == 0 and n <= 100000000
header = json.loads(data[8:8 + n].decode('utf-8'))
assert header.pop('__metadata__') == {'format': 'pt'}
size = {'F64': 8, 'F32': 4, 'F16': 2, 'BF16': 2, 'I64': 8, 'I32': 4, 'I16': 2, 'I8': 1, 'U8': 1, 'BOOL': 1}
code = {'F64': 'd', 'F32': 'f', 'F16': 'e', 'I64': 'q', 'I32': 'i', 'I16': 'h', 'I8': 'b', 'U8': 'B', 'BOOL': '?'}
end = 0
for name, entry in sorted(header.items(), key=lambda item: item[1]['data_offsets']):
    assert entry['data_offsets'][0] == end and entry['shape'] == [5, 7], name
    end = entry['data_offsets'][1]
    part, kind = data[8 + n:][entry['data_offsets'][0]:end], entry['dtype']
    assert len(part) == 35 * size[kind]
    if kind == 'BF16':
        values = [struct.unpack('<f', b'\0\0' + part[i:i + 2])[0] for i in range(0, 70, 2)]
    else:
        values = list(struct.unpack('<35' + code[kind], part))
    expected = list(range(-17, 18))
    if kind == 'U8': expected = [x % 256 for x in expected]
    if kind == 'BOOL': expected = [x != 0 for x in expected]
    assert values == expected, (name, values)
assert end == len(data) - 8 - n and len(header) == 10
text = json.dumps({'x': {'dtype': 'F32', 'shape': [2, 3], 'data_offsets': [4, 28]},
                   'ü': {'dtype': 'I16', 'shape': [2], 'data_offsets': [0, 4]}}).encode()
open(sys.argv[2], 'wb').write(struct.pack('<Q', len(text)) + text + struct.pack('<2h6f', -1, 2, *range(6)))
print('agreed')
)";

TEST(Safetensors, AgreesWithAReaderAndWriterInPython) {
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "no /usr/bin/python3";
  const TempDir dir;
  save_safetensors(dir / "ours", all_types(), {{"format", "pt"}});
  put_bytes(dir / "check.py", kPython);
  int code = 0;
  const auto text = output_of_command("/usr/bin/python3 " + (dir / "check.py") + " " +
                                          (dir / "ours") + " " + (dir / "theirs") + " 2>&1",
                                      &code);
  ASSERT_EQ(text, "agreed\n");
  const auto theirs = load_safetensors(dir / "theirs").tensors;
  EXPECT_TRUE(torch::equal(theirs.at("ü"), torch::tensor({-1, 2}, torch::kShort)));
  EXPECT_TRUE(torch::equal(theirs.at("x"), torch::arange(6, torch::kFloat).view({2, 3})));
}

}  // namespace
}  // namespace translution::testing
