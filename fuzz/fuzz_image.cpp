// Whatever the bytes are, decoding them ends with a picture of the size that its header says, or
// with one line.

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "translution/data/image_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto wanted = translution::image_size(bytes, "input");
    const auto image = translution::decode_image(bytes, "input");
    if (image.rows != wanted.rows || image.cols != wanted.cols) std::abort();
    if (image.pixels.size() != size_t{3} * image.rows * image.cols) std::abort();
    translution::decode_image(bytes, "input", {16, 16});
  } catch (const std::runtime_error&) {
  }
  return 0;
}
