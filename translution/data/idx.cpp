#include "translution/data/idx.h"

#include <algorithm>
#include <utility>

#include "translution/core/error.h"
#include "translution/data/gunzip.h"

namespace translution {

using namespace detail;

namespace {

constexpr size_t kMaxDimensions = 4;
constexpr size_t kLongestHeader = 4 + 4 * kMaxDimensions;
constexpr int64_t kMaxValues = int64_t{1} << 32;

// gzip compresses images to about a fifth. A higher ratio than this is accepted only up to
// kSmallBytes.
constexpr int64_t kMaxRatio = 100;
constexpr int64_t kSmallBytes = 32 << 20;

struct Header {
  std::vector<int64_t> sizes;
  size_t length;  // bytes of the header itself
  int64_t count;  // values after it
};

int64_t read_size(std::string_view bytes, size_t at) {
  int64_t size = 0;
  for (size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<uint8_t>(bytes[at + i]);
  return size;
}

// Two zeros, the type (8: unsigned byte), the number of dimensions, then the sizes in big-endian.
Header parse_header(std::string_view bytes, const std::string& name) {
  ensure(bytes.size() >= 4, name, ": is too short for an IDX file: ", bytes.size(), " bytes");
  const auto byte = [&](size_t i) { return static_cast<int>(static_cast<uint8_t>(bytes[i])); };
  ensure(byte(0) == 0 && byte(1) == 0, name,
         ": is not an IDX file: expected 0 0 at the start, got ", byte(0), " ", byte(1));
  ensure(byte(2) == 8, name, ": expected IDX of unsigned bytes (type 8), got type ", byte(2));
  const size_t sizes = byte(3);
  ensure(1 <= sizes && sizes <= kMaxDimensions, name, ": expected 1 to ", kMaxDimensions,
         " dimensions in the IDX header, got ", sizes);
  Header header{{}, 4 + 4 * sizes, 1};
  ensure(bytes.size() >= header.length, name, ": the IDX header is truncated");
  for (size_t i = 0; i < sizes; ++i) {
    header.sizes.push_back(read_size(bytes, 4 + 4 * i));
    const int64_t size = header.sizes.back();
    ensure(size > 0, name, ": the IDX header has a size of 0");
    ensure(size <= kMaxValues / header.count, name, ": the IDX header declares more than ",
           kMaxValues, " bytes");
    header.count *= size;
  }
  return header;
}

IdxArray parse_plain(std::string_view bytes, const std::string& name) {
  Header header = parse_header(bytes, name);
  const auto values = bytes.substr(header.length);
  ensure(static_cast<int64_t>(values.size()) == header.count, name, ": expected ", header.count,
         " bytes (", times(header.sizes), ") after the IDX header, got ", values.size());
  return {std::move(header.sizes), {values.begin(), values.end()}};
}

IdxArray parse_gzip(std::string_view bytes, const std::string& name) {
  Gunzip content(bytes, name);
  uint8_t start[kLongestHeader];
  const size_t got = content.read(start, kLongestHeader);
  Header header = parse_header({reinterpret_cast<const char*>(start), got}, name);
  const int64_t packed = static_cast<int64_t>(bytes.size());
  ensure(header.count <= std::max(kSmallBytes, packed * kMaxRatio), name, ": declares ",
         header.count, " bytes, too many for ", packed, " bytes of gzip data");
  std::vector<uint8_t> values(header.count);
  // `start` may already contain some of the values, or all of them and trailing bytes.
  const size_t early = std::min<size_t>(got - header.length, values.size());
  std::copy_n(start + header.length, early, values.begin());
  const size_t held = early + content.read(values.data() + early, values.size() - early);
  ensure(held == values.size(), name, ": expected ", values.size(), " bytes (", times(header.sizes),
         ") after the IDX header, got ", held);
  ensure(header.length + early == got && content.at_end(), name, ": has more than the ",
         values.size(), " bytes (", times(header.sizes), ") that its IDX header declares");
  return {std::move(header.sizes), std::move(values)};
}

}  // namespace

IdxArray parse_idx(std::string_view bytes, const std::string& name) {
  return is_gzip(bytes) ? parse_gzip(bytes, name) : parse_plain(bytes, name);
}

}  // namespace translution
