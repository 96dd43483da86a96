// Any bytes either decode to an image of the size in the header, or are rejected with
// std::runtime_error. A decoded part of the image has the same pixels.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "translution/data/image_file.h"

namespace {

using namespace translution;

// Compares the middle third, decoded alone, with the decoded image.
void compare_part(std::string_view bytes, const ImageSize& full, const ImageSize& at_least) {
  const RgbImage all = decode_image(bytes, "input", at_least);
  const Box box{full.rows / 3.0, full.cols / 3.0, full.rows / 3.0, full.cols / 3.0};
  ImagePart part;
  decode_part(bytes, "input", at_least, box, part);
  if (part.whole.rows != all.rows || part.whole.cols != all.cols) std::abort();
  const double scale = static_cast<double>(all.cols) / full.cols;
  const int top = static_cast<int>(box.top * scale), left = static_cast<int>(box.left * scale);
  const int rows = std::max(1, static_cast<int>(box.rows * scale));
  const int cols = std::max(1, static_cast<int>(box.cols * scale));
  for (int row = top; row < top + rows; ++row) {
    const auto* a =
        &part.image.pixels.at(((row - part.top) * part.image.cols + left - part.left) * 3);
    const auto* b = &all.pixels.at((row * all.cols + left) * 3);
    if (std::memcmp(a, b, cols * 3) != 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const ImageSize expected = image_size(bytes, "input");
    const RgbImage image = decode_image(bytes, "input");
    if (image.rows != expected.rows || image.cols != expected.cols) std::abort();
    if (image.pixels.size() != size_t{3} * image.rows * image.cols) std::abort();
    compare_part(bytes, expected, kFullSize);
    compare_part(bytes, expected, {16, 16});
  } catch (const std::runtime_error&) {
  }
  return 0;
}
