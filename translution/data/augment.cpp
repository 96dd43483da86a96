#include "translution/data/augment.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "translution/data/wide.h"

namespace translution {
namespace {

constexpr std::array<float, 3> kMean{0.485f, 0.456f, 0.406f};
constexpr std::array<float, 3> kDeviation{0.229f, 0.224f, 0.225f};
constexpr size_t kMaxHeld = size_t{16} << 20;  // bytes of a thread's buffer
constexpr double kSmallestShare = 0.08, kWidest = 4.0 / 3;

Box middle(const ImageSize& picture, double rows, double cols) {
  return {(picture.rows - rows) / 2, (picture.cols - cols) / 2, rows, cols};
}

// Pixels that the whole side needs so that `part` of it has at least `size` pixels.
int needed(int size, double part, int whole) {
  constexpr double kRounding = 1e-6;  // half of the image at half its size must not round up
  return static_cast<int>(std::ceil(size * whole / part - kRounding));
}

// Decodes only the box, at the smallest scale that still gives `size` pixels per side.
RgbImage crop(std::string_view bytes, const std::string& name, const ImageSize& picture,
              const Box& box, int size, bool mirrored) {
  const ImageSize at_least{needed(size, box.rows, picture.rows),
                           needed(size, box.cols, picture.cols)};
  // Reused by each worker: the system would have to map and clear new memory for every image.
  thread_local ImagePart part;
  decode_part(bytes, name, at_least, box_read(box, size, size), part);
  const double down = static_cast<double>(part.whole.rows) / picture.rows;
  const double across = static_cast<double>(part.whole.cols) / picture.cols;
  const Box scaled{box.top * down, box.left * across, box.rows * down, box.cols * across};
  RgbImage result = resample(part, scaled, size, size, mirrored);
  if (part.image.pixels.size() > kMaxHeld) part = {};
  return result;
}

TRANSLUTION_WIDE
void to_planes(const uint8_t* rgb, size_t pixels, float* __restrict out) {
  for (size_t i = 0; i < pixels; ++i)
    for (size_t c = 0; c < 3; ++c)
      out[c * pixels + i] = rgb[i * 3 + c] * (1 / (255 * kDeviation[c])) - kMean[c] / kDeviation[c];
}

}  // namespace

Box centre_crop(const ImageSize& picture, int size) {
  const int shorter = std::lround(size * 256.0 / 224);
  const int64_t rows = picture.rows, cols = picture.cols, least = std::min(rows, cols);
  // The size of the resized image; the offset of the crop is an integer there.
  const int64_t all_rows = shorter * rows / least, all_cols = shorter * cols / least;
  const double row = static_cast<double>(rows) / all_rows,
               col = static_cast<double>(cols) / all_cols;
  return {(all_rows - size) / 2 * row, (all_cols - size) / 2 * col, size * row, size * col};
}

Box random_crop(const ImageSize& picture, Random& random) {
  const double area = static_cast<double>(picture.rows) * picture.cols;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double share = random.uniform(kSmallestShare, 1);
    const double ratio = std::exp(random.uniform(-std::log(kWidest), std::log(kWidest)));
    const int64_t rows = std::lround(std::sqrt(area * share / ratio));
    const int64_t cols = std::lround(std::sqrt(area * share * ratio));
    if (rows < 1 || cols < 1 || rows > picture.rows || cols > picture.cols) continue;
    const double top = random.below(picture.rows - rows + 1);
    const double left = random.below(picture.cols - cols + 1);
    return {top, left, static_cast<double>(rows), static_cast<double>(cols)};
  }
  const double rows = std::min<double>(picture.rows, picture.cols * kWidest);
  const double cols = std::min<double>(picture.cols, picture.rows * kWidest);
  return middle(picture, rows, cols);
}

RgbImage evaluation_image(std::string_view bytes, const std::string& name, int size) {
  const ImageSize picture = image_size(bytes, name);
  return crop(bytes, name, picture, centre_crop(picture, size), size, /*mirrored=*/false);
}

RgbImage training_image(std::string_view bytes, const std::string& name, int size,
                        const RandAugmentOptions& options, Random& random) {
  const ImageSize picture = image_size(bytes, name);
  const Box box = random_crop(picture, random);
  RgbImage image = crop(bytes, name, picture, box, size, /*mirrored=*/random.chance(0.5));
  rand_augment(image, options, random);
  return image;
}

void normalise(const RgbImage& image, float* out) {
  to_planes(image.pixels.data(), static_cast<size_t>(image.rows) * image.cols, out);
}

}  // namespace translution
