#include "translution/data/rand_augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "translution/data/wide.h"

namespace translution {
namespace {

using Table = std::array<uint8_t, 256>;
using Histogram = std::array<int64_t, 256>;

const cv::Scalar kMeanColour(124, 116, 104);
// OpenCV's warp starts threads of its own for more pixels than this. They are not wanted: the
// loader already augments images in parallel.
constexpr int kSerialPixels = 1 << 16;

// An OpenCV header for the same memory.
cv::Mat view(RgbImage& image) { return {image.rows, image.cols, CV_8UC3, image.pixels.data()}; }

uint8_t to_byte(double value) { return std::lround(std::clamp(value, 0.0, 255.0)); }

template <typename F>
Table make_table(F f) {
  Table table;
  for (int i = 0; i < 256; ++i) table[i] = to_byte(f(i));
  return table;
}

void look_up(RgbImage& image, const std::array<Table, 3>& tables) {
  for (size_t i = 0; i < image.pixels.size(); i += 3)
    for (size_t c = 0; c < 3; ++c) image.pixels[i + c] = tables[c][image.pixels[i + c]];
}

// Applies a function that the compiler can vectorise to every value.
template <typename F>
void map_values(RgbImage& image, F f) {
  for (uint8_t& value : image.pixels) value = f(value);
}

std::array<Histogram, 3> histograms(const RgbImage& image) {
  std::array<Histogram, 3> counts{};
  for (size_t i = 0; i < image.pixels.size(); i += 3)
    for (size_t c = 0; c < 3; ++c) ++counts[c][image.pixels[i + c]];
  return counts;
}

Table stretched(const Histogram& counts) {
  int low = 0, high = 255;
  while (low < 255 && counts[low] == 0) ++low;
  while (high > 0 && counts[high] == 0) --high;
  if (high <= low) return make_table([](int i) { return i; });
  return make_table([=](int i) { return (i - low) * 255.0 / (high - low); });
}

// Maps brightness i to the share of pixels below it. The total excludes pixels of the highest
// brightness, so that these map to 255 and the darkest to 0.
Table equalized(const Histogram& counts) {
  int64_t total = 0, last = 0;
  for (const int64_t count : counts) {
    total += count;
    if (count > 0) last = count;
  }
  if (total == last) return make_table([](int i) { return i; });
  std::array<double, 256> below{};
  for (int i = 1; i < 256; ++i) below[i] = below[i - 1] + counts[i - 1];
  return make_table([&](int i) { return below[i] * 255.0 / (total - last); });
}

void tabulate(RgbImage& image, Table (*make)(const Histogram&)) {
  const auto counts = histograms(image);
  look_up(image, {make(counts[0]), make(counts[1]), make(counts[2])});
}

// Moves by an integer number of pixels, without blurring.
void translate(RgbImage& image, int right, int down) {
  const cv::Rect all(0, 0, image.cols, image.rows);
  const cv::Rect to = (all + cv::Point(right, down)) & all;
  RgbImage moved{image.rows, image.cols, std::vector<uint8_t>(image.pixels.size())};
  cv::Mat canvas = view(moved);
  canvas.setTo(kMeanColour);
  view(image)(to - cv::Point(right, down)).copyTo(canvas(to));
  image = std::move(moved);
}

// `forward` maps a point (x, y) of the image to its new position, both relative to the centre.
void warp(RgbImage& image, const cv::Matx22d& forward) {
  const double x = (image.cols - 1) / 2.0, y = (image.rows - 1) / 2.0;
  cv::Matx23d affine(forward(0, 0), forward(0, 1), x - forward(0, 0) * x - forward(0, 1) * y,  //
                     forward(1, 0), forward(1, 1), y - forward(1, 0) * x - forward(1, 1) * y);
  RgbImage moved{image.rows, image.cols, std::vector<uint8_t>(image.pixels.size())};
  const int rows = std::max(1, kSerialPixels / image.cols);
  for (int row = 0; row < image.rows; row += rows) {
    cv::Mat to = view(moved).rowRange(row, std::min(image.rows, row + rows));
    cv::warpAffine(view(image), to, affine, to.size(), cv::INTER_LINEAR, cv::BORDER_CONSTANT,
                   kMeanColour);
    affine(1, 2) -= rows;
  }
  image = std::move(moved);
}

void rotate(RgbImage& image, double level) {
  const double angle = level * 30 * CV_PI / 180, c = std::cos(angle), s = std::sin(angle);
  warp(image, {c, s, -s, c});  // y points down
}

// Fixed-point arithmetic in units of 1/65536, so the result is the same on every machine.
TRANSLUTION_WIDE
void blend_with_grey(uint8_t* rgb, size_t values, int strength) {
  for (size_t i = 0; i < values; i += 3) {
    const int grey = (19595 * rgb[i] + 38470 * rgb[i + 1] + 7471 * rgb[i + 2] + 32768) >> 16;
    for (size_t c = 0; c < 3; ++c) {
      const int value = grey + ((strength * (rgb[i + c] - grey) + 32768) >> 16);
      rgb[i + c] = std::clamp(value, 0, 255);
    }
  }
}

TRANSLUTION_WIDE
void scale_around(uint8_t* values, size_t count, int middle, int strength) {
  for (size_t i = 0; i < count; ++i) {
    const int value = middle + ((strength * (values[i] - middle) + 32768) >> 16);
    values[i] = std::clamp(value, 0, 255);
  }
}

void change_colour(RgbImage& image, double factor) {
  blend_with_grey(image.pixels.data(), image.pixels.size(), std::lround(factor * 65536));
}

// Scales the distance from `middle`: black for brightness, the mean grey for contrast.
void change_range(RgbImage& image, int middle, double factor) {
  scale_around(image.pixels.data(), image.pixels.size(), middle, std::lround(factor * 65536));
}

int mean_grey(const RgbImage& image) {
  int64_t red = 0, green = 0, blue = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    red += image.pixels[i];
    green += image.pixels[i + 1];
    blue += image.pixels[i + 2];
  }
  return std::lround((0.299 * red + 0.587 * green + 0.114 * blue) * 3 / image.pixels.size());
}

void change_sharpness(RgbImage& image, double factor) {
  const cv::Matx33f kernel = cv::Matx33f(1, 1, 1, 1, 5, 1, 1, 1, 1) * (1 / 13.f);
  cv::Mat sharp = view(image), smooth;
  cv::filter2D(sharp, smooth, -1, kernel, {-1, -1}, 0, cv::BORDER_REPLICATE);
  cv::addWeighted(sharp, factor, smooth, 1 - factor, 0, sharp);
}

void posterize(RgbImage& image, double strength) {
  const int bits = std::max(1, 4 - static_cast<int>(strength * 4)), dropped = 255 >> bits;
  map_values(image, [=](int i) { return i & ~dropped; });
}

void solarize(RgbImage& image, double strength) {
  const int threshold = 256 - static_cast<int>(strength * 256);
  map_values(image, [=](int i) { return i < threshold ? i : 255 - i; });
}

void solarize_add(RgbImage& image, double strength) {
  const int added = static_cast<int>(strength * 110);
  map_values(image, [=](int i) { return i < 128 ? i + added : i; });
}

}  // namespace

void apply_op(RgbImage& image, AugmentOp op, double level) {
  const double strength = std::abs(level), factor = 1 + 0.9 * level;
  switch (op) {
    case AugmentOp::auto_contrast:
      return tabulate(image, stretched);
    case AugmentOp::equalize:
      return tabulate(image, equalized);
    case AugmentOp::invert:
      return map_values(image, [](int i) { return 255 - i; });
    case AugmentOp::rotate:
      return rotate(image, level);
    case AugmentOp::posterize:
      return posterize(image, strength);
    case AugmentOp::solarize:
      return solarize(image, strength);
    case AugmentOp::solarize_add:
      return solarize_add(image, strength);
    case AugmentOp::colour:
      return change_colour(image, factor);
    case AugmentOp::contrast:
      return change_range(image, mean_grey(image), factor);
    case AugmentOp::brightness:
      return change_range(image, 0, factor);
    case AugmentOp::sharpness:
      return change_sharpness(image, factor);
    case AugmentOp::shear_x:
      return warp(image, {1, 0.3 * level, 0, 1});
    case AugmentOp::shear_y:
      return warp(image, {1, 0, 0.3 * level, 1});
    case AugmentOp::translate_x:
      return translate(image, std::lround(0.45 * level * image.cols), 0);
    case AugmentOp::translate_y:
      return translate(image, 0, std::lround(0.45 * level * image.rows));
  }
}

void rand_augment(RgbImage& image, const RandAugmentOptions& options, Random& random) {
  for (int i = 0; i < options.operations; ++i) {
    const auto op = static_cast<AugmentOp>(random.below(kAugmentOps));
    const bool applied = random.chance(0.5);
    const double magnitude = options.magnitude + options.deviation * random.normal();
    const double strength = std::clamp(magnitude / 10, 0.0, 1.0);
    const double level = random.chance(0.5) ? strength : -strength;
    if (applied) apply_op(image, op, level);
  }
}

}  // namespace translution
