// Headers of safetensors files: any bytes are either rejected with std::runtime_error, or describe
// tensors that fill the file exactly.

#include <stdexcept>

#include "translution/io/safetensors_header.h"

namespace {

using namespace translution;

void check(bool ok) {
  if (!ok) __builtin_trap();
}

void check_header(const SafetensorsHeader& header, int64_t data_bytes) {
  int64_t end = 0;
  for (const auto& entry : header.entries) {
    check(entry.begin == end && entry.end >= entry.begin);
    end = entry.end;
    int64_t bytes = byte_size(entry.dtype);
    for (const int64_t side : entry.shape) check(!__builtin_mul_overflow(bytes, side, &bytes));
    check(bytes == entry.end - entry.begin);
  }
  check(end == data_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto file_size = static_cast<int64_t>(size);
  try {
    const auto header = parse_safetensors_header(bytes, file_size);
    const int64_t start = kLengthBytes + safetensors_header_length(bytes, file_size);
    check_header(header, file_size - start);
    // The header that we write for it is read back the same.
    const auto again = format_safetensors_header(header);
    const auto again_size = static_cast<int64_t>(again.size()) + file_size - start;
    check(format_safetensors_header(parse_safetensors_header(again, again_size)) == again);
  } catch (const std::runtime_error&) {
  }
  return 0;
}
