// Any bytes as gzip, read in pieces of different sizes, may only cause a std::runtime_error. The
// same bytes, compressed by zlib, must decompress to themselves.

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "translution/data/gunzip.h"

namespace {

constexpr size_t kMaxBytes = 1 << 20;  // a zip bomb is larger; the reader decides when to stop

std::string unpack(std::string_view packed, size_t piece) {
  translution::Gunzip gunzip(packed, "input");
  std::string text;
  std::vector<uint8_t> part(piece);
  while (text.size() < kMaxBytes) {
    const size_t count = gunzip.read(part.data(), piece);
    text.append(reinterpret_cast<const char*>(part.data()), count);
    if (count < piece) break;
  }
  if (text.size() < kMaxBytes && !gunzip.at_end()) std::abort();
  return text;
}

std::string pack(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t piece = 1 + size % 613;
  try {
    unpack(bytes, piece);
  } catch (const std::runtime_error&) {
  }
  if (size < kMaxBytes && unpack(pack(bytes), piece) != bytes) std::abort();
  return 0;
}
