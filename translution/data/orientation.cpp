#include "translution/data/orientation.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace translution {
namespace {

// Reads unsigned numbers from bytes. Numbers beyond the end are 0.
class ExifNumbers {
 public:
  ExifNumbers(std::string_view bytes, bool little_endian) : bytes_(bytes), little_(little_endian) {}

  uint64_t two(uint64_t at) const { return number(at, 2); }
  uint64_t four(uint64_t at) const { return number(at, 4); }

 private:
  uint64_t number(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return 0;
    uint64_t result = 0;
    for (uint64_t i = 0; i < size; ++i)
      result = result << 8 | static_cast<unsigned char>(bytes_[at + (little_ ? size - 1 - i : i)]);
    return result;
  }

  const std::string_view bytes_;
  const bool little_;
};

// The value of EXIF's orientation tag, 1 to 8; 0 if there is none.
uint64_t orientation_number(std::string_view tiff) {
  constexpr uint64_t kOrientation = 0x0112, kShort = 3, kEntry = 12;
  const bool little = tiff.substr(0, 2) == "II";
  if (!little && tiff.substr(0, 2) != "MM") return 0;
  const ExifNumbers numbers(tiff, little);
  const uint64_t directory = numbers.four(4), entries = numbers.two(directory);
  for (uint64_t e = 0; e < entries; ++e) {
    const uint64_t at = directory + 2 + e * kEntry;
    if (numbers.two(at) == kOrientation && numbers.two(at + 2) == kShort)
      return numbers.two(at + 8);
  }
  return 0;
}

}  // namespace

ImageSize Orientation::size(const ImageSize& other) const {
  return swapped ? ImageSize{other.cols, other.rows} : other;
}

Box Orientation::stored_box(const Box& shown, const ImageSize& stored) const {
  Box box = shown;
  if (swapped) box = {shown.left, shown.top, shown.cols, shown.rows};
  if (from_bottom) box.top = stored.rows - box.top - box.rows;
  if (from_right) box.left = stored.cols - box.left - box.cols;
  return box;
}

void Orientation::apply(ImagePart& part) const {
  if (as_stored()) return;
  const RgbImage& stored = part.image;
  const ImageSize to = size({stored.rows, stored.cols});
  RgbImage shown{to.rows, to.cols, std::vector<uint8_t>(stored.pixels.size())};
  uint8_t* out = shown.pixels.data();
  for (int row = 0; row < to.rows; ++row)
    for (int col = 0; col < to.cols; ++col, out += 3) {
      const int r = swapped ? col : row, c = swapped ? row : col;
      const size_t from = static_cast<size_t>(from_bottom ? stored.rows - 1 - r : r) * stored.cols +
                          (from_right ? stored.cols - 1 - c : c);
      std::copy_n(&stored.pixels[from * 3], 3, out);
    }
  if (from_bottom) part.top = part.whole.rows - part.top - stored.rows;
  if (from_right) part.left = part.whole.cols - part.left - stored.cols;
  if (swapped) std::swap(part.top, part.left);
  part.whole = size(part.whole);
  part.image = std::move(shown);
}

// EXIF's number gives the corner of the displayed image where the first stored pixel is, and
// whether the first stored row is displayed as a row or as a column.
Orientation orientation_of(std::string_view exif) {
  constexpr Orientation kOrientations[] = {
      {},                    // 1: top left
      {false, false, true},  // 2: top right
      {false, true, true},   // 3: bottom right
      {false, true, false},  // 4: bottom left
      {true, false, false},  // 5: top left; the first row is the left column
      {true, true, false},   // 6: top right; the right column
      {true, true, true},    // 7: bottom right; the right column, upwards
      {true, false, true}};  // 8: bottom left; the left column, upwards
  const uint64_t number = orientation_number(exif);
  return 1 <= number && number <= 8 ? kOrientations[number - 1] : Orientation{};
}

}  // namespace translution
