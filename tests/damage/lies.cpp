// Files that declare wrong sizes or offsets: too large for memory, for 63 bits or for the file, or
// overlapping.

#include "tests/damage/lies.h"

#include <regex>

#include "tests/data/idx_files.h"
#include "tests/data/pictures.h"
#include "translution/io/checksum.h"
#include "translution/train/manifest.h"

namespace translution::testing {
namespace {

std::string idx_with(const std::vector<uint32_t>& sizes) { return idx_bytes(sizes, 784); }

std::string length_word(uint64_t length) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(length >> shift);
  return bytes;
}

std::string with_header(const std::string& header, size_t data) {
  return length_word(header.size()) + header + std::string(data, '\0');
}

// The header's entry of a float tensor.
std::string entry(const std::string& name, const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[" + shape + "],\"data_offsets\":[" +
         offsets + "]}";
}

}  // namespace

Lies idx_lies() {
  constexpr uint32_t kMax = 0xffffffff, kSign = 0x80000000;
  return {{"2^32-1 images", idx_with({kMax, 28, 28})},
          {"2^31 images", idx_with({kSign, 28, 28})},
          {"sizes with a product of 2^96", idx_with({kMax, kMax, kMax})},
          {"sizes with a product of 2^64", idx_with({1u << 30, 1u << 30, 16})},
          {"no images", idx_with({0, 28, 28})},
          {"255 sizes", std::string("\0\0\x08\xff", 4) + std::string(2000, '\1')},
          {"no sizes", std::string("\0\0\x08\0", 4) + std::string(784, '\1')},
          {"floats", std::string("\0\0\x0d\3", 4) + idx_with({1, 28, 28}).substr(4)}};
}

Lies gzip_lies() {
  Lies lies;
  for (const auto& [what, bytes] : idx_lies()) lies.emplace_back(what + ", packed", gzip(bytes));
  lies.emplace_back("100 MB of zeros in 100 KB",
                    gzip(idx_bytes({130000, 28, 28}, 0) + std::string(130000 * 784, '\0')));
  lies.emplace_back("two files in one", gzip(idx_bytes({20, 28, 28}, 20 * 784)) + gzip("more"));
  return lies;
}

Lies safetensors_lies(const std::string& whole) {
  const std::string rest = whole.substr(8, 4000);
  const auto one = [](const std::string& shape, const std::string& offsets) {
    return with_header("{" + entry("w", shape, offsets) + "}", 8);
  };
  return {{"a header of 2^63 bytes", length_word(uint64_t{1} << 63) + rest},
          {"a header of 2^64-1 bytes", length_word(~uint64_t{0}) + rest},
          {"a header of 100 MB", length_word(100'000'000) + rest},
          {"no header", length_word(0) + rest},
          {"2^63 elements", one("9223372036854775808", "0,8")},
          {"2^63-1 elements", one("9223372036854775807", "0,8")},
          {"2^64 elements in a product", one("4294967296,4294967296", "0,8")},
          {"2^62 elements of 4 bytes", one("4611686018427387904", "0,8")},
          {"minus two elements", one("-2", "0,8")},
          {"end before begin", one("2", "8,0")},
          {"offsets beyond the end", one("2", "8,16")},
          {"offsets of 2^64", one("2", "18446744073709551608,18446744073709551616")},
          {"overlapping tensors",
           with_header("{" + entry("a", "2", "0,8") + "," + entry("b", "2", "4,12") + "}", 12)},
          {"a gap between tensors",
           with_header("{" + entry("a", "1", "0,4") + "," + entry("b", "1", "8,12") + "}", 12)},
          {"a duplicate name",
           with_header("{" + entry("a", "1", "0,4") + "," + entry("a", "1", "4,8") + "}", 8)},
          {"deeply nested arrays", with_header(std::string(50000, '['), 8)}};
}

// Changes the text after the checksum's digits, and recomputes the checksum.
Lies manifest_lies(const std::string& whole) {
  const size_t start = whole.find(": \"") + 3 + Checksum::kDigits;
  const std::string rest = whole.substr(start);
  const auto with = [&](const char* pattern, const std::string& text) {
    return seal_manifest(std::regex_replace(rest, std::regex(pattern), text,
                                            std::regex_constants::format_first_only));
  };
  return {{"a file of 2^63 bytes", with("\"bytes\": [0-9]+", "\"bytes\": 9223372036854775808")},
          {"a file of 2^63-1 bytes", with("\"bytes\": [0-9]+", "\"bytes\": 9223372036854775807")},
          {"a file of -1 bytes", with("\"bytes\": [0-9]+", "\"bytes\": -1")},
          {"a file of half a byte", with("\"bytes\": [0-9]+", "\"bytes\": 0.5")},
          {"step 2^64", with("\"step\": [0-9]+", "\"step\": 18446744073709551616")},
          {"another version", with("\"version\": [0-9]+", "\"version\": 2")},
          {"deeply nested arrays", with("\"state\": ", "\"more\": " + std::string(50000, '['))},
          {"no classes", with("\"classes\"", "\"glasses\"")},
          {"an unknown model", with("vit-a/21", "vit-y/21")},
          {"a larger model", with("vit-a/21", "vit-b/21")},
          {"a huge image", with("\"image-size\": \"[^\"]*\"", "\"image-size\": \"4000000\"")}};
}

Lies jpeg_lies(const std::string& whole) {
  const size_t frame = whole.find("\xff\xc0");  // marker, length, bits, rows, columns
  const auto with_size = [&](const std::string& size) {
    return std::string(whole).replace(frame + 5, 4, size);
  };
  return {{"65535x65535 pixels", with_size("\xff\xff\xff\xff")},
          {"no pixels", with_size(std::string(4, '\0'))},
          {"twice as many rows", with_size(std::string("\0\x66\0\x3c", 4))}};
}

Lies png_lies() {
  const auto of = [](uint32_t rows, uint32_t cols, uint8_t bits) {
    RawPng png;
    png.rows = rows, png.cols = cols, png.bits = bits;
    png.lines = {std::string(9, '\x55')};
    return png.bytes();
  };
  return {{"2^31-1 rows", of(0x7fffffff, 3, 8)},
          {"2^31 rows", of(0x80000000, 3, 8)},
          {"2^32-1 columns", of(1, ~0u, 8)},
          {"30000x30000 pixels", of(30000, 30000, 8)},
          {"no rows", of(0, 3, 8)},
          {"3 bits", of(1, 3, 3)},
          {"more rows than the data has", of(50, 3, 8)}};
}

Lies meta_lies() {
  const auto with = [](const std::string& vocabulary, const std::string& tokens) {
    return "{\"tokenizer\": \"bytes\", \"vocabulary\": " + vocabulary +
           ", \"train_tokens\": " + tokens + ", \"val_tokens\": 130}";
  };
  return {{"2^63 tokens", with("256", "9223372036854775808")},
          {"2^63-1 tokens", with("256", "9223372036854775807")},
          {"-1 tokens", with("256", "-1")},
          {"a vocabulary of 2^64", with("18446744073709551616", "1200")},
          {"a vocabulary of 1e300", with("1e300", "1200")},
          {"deeply nested arrays", std::string(50000, '[')}};
}

Lies molecule_lies() {
  return {{"2^40 atoms", "a 1099511627776 1\nH 0 0 0\n"},
          {"2^64 atoms", "a 18446744073709551616 1\nH 0 0 0\n"},
          {"-1 atoms", "a -1 1\n"},
          {"an energy of 1e999", "a 1 1e999\nH 0 0 0\n"},
          {"an atom too many", "a 1 1\nH 0 0 0\nH 0 0 0\n"},
          {"no element", "a 1 1\n7 0 0 0\n"}};
}

Lies encoder_lies(const std::string& whole) {
  const std::string but_last = whole.substr(0, whole.rfind(':') + 1);
  return {{"token 2^63", but_last + "9223372036854775808}"},
          {"token 2^32", but_last + "4294967296}"},
          {"token -1", but_last + "-1}"},
          {"a token of text", but_last + "\"7\"}"},
          {"a duplicate number", but_last + "7}"},
          {"deeply nested arrays", std::string(50000, '[')}};
}

Lies toml_lies() {
  return {{"a batch of 2^63", "batch = 9223372036854775808\n"},
          {"a batch of 2^63-1", "batch = 9223372036854775807\n"},
          {"a batch of 2^64 in quotes", "batch = \"18446744073709551616\"\n"},
          {"a learning rate of NaN", "lr = nan\n"},
          {"an infinite learning rate", "lr = inf\n"},
          {"deeply nested arrays", "lr = " + std::string(50000, '[') + "\n"},
          {"deeply nested tables", "a" + std::string(3000, '.') + "b = 1\n"},
          {"a very long name", std::string(100000, 'x') + " = 1\n"},
          {"an unterminated string", "lr = \"\"\"" + std::string(100000, 'x')},
          {"a huge image", "image-size = 4000000\n"},
          {"bytes that are not UTF-8", "lr = \"\xff\xfe\"\n"}};
}

}  // namespace translution::testing
