#include "translution/data/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "translution/core/error.h"
#include "translution/data/wide.h"

namespace translution {

using namespace detail;

namespace {

// The filter along one axis: output pixel i is a weighted sum of `count` source pixels starting at
// first[i]. Weights sum to 1; unused taps have weight zero.
struct Taps {
  int count = 0;
  std::vector<int> first;
  std::vector<float> weights;  // [pixels, count]

  const float* of(int i) const { return weights.data() + static_cast<size_t>(i) * count; }
};

Taps make_taps(int source, double begin, double length, int pixels) {
  const double step = length / pixels, reach = std::max(step, 1.0);
  Taps taps;
  taps.count = std::min(source, static_cast<int>(std::ceil(2 * reach)));
  taps.first.resize(pixels);
  taps.weights.assign(static_cast<size_t>(pixels) * taps.count, 0.f);
  for (int i = 0; i < pixels; ++i) {
    const double centre = begin + (i + 0.5) * step;
    const int first_tap = static_cast<int>(std::floor(centre - reach + 0.5));
    const int first = taps.first[i] = std::clamp(first_tap, 0, source - taps.count);
    float* weights = taps.weights.data() + static_cast<size_t>(i) * taps.count;
    double sum = 0;
    for (int k = 0; k < taps.count; ++k)
      sum += std::max(0.0, 1 - std::abs(first + k + 0.5 - centre) / reach);
    for (int k = 0; k < taps.count; ++k)
      weights[k] = std::max(0.0, 1 - std::abs(first + k + 0.5 - centre) / reach) / sum;
  }
  return taps;
}

void mirror(Taps* taps) {
  const int pixels = taps->first.size();
  for (int i = 0, j = pixels - 1; i < j; ++i, --j) {
    std::swap(taps->first[i], taps->first[j]);
    std::swap_ranges(taps->weights.begin() + i * taps->count,
                     taps->weights.begin() + (i + 1) * taps->count,
                     taps->weights.begin() + j * taps->count);
  }
}

// out[x] = sum over k of weights[k] * rows[k * stride + x]
TRANSLUTION_WIDE
void mix_rows(const uint8_t* rows, size_t stride, const float* weights, int count, int values,
              float* __restrict out) {
  for (int x = 0; x < values; ++x) out[x] = weights[0] * rows[x];
  int k = 1;
  for (; k + 1 < count; k += 2) {
    const uint8_t *a = rows + k * stride, *b = a + stride;
    const float wa = weights[k], wb = weights[k + 1];
    for (int x = 0; x < values; ++x) out[x] += wa * a[x] + wb * b[x];
  }
  if (k == count) return;
  const uint8_t* a = rows + k * stride;
  for (int x = 0; x < values; ++x) out[x] += weights[k] * a[x];
}

// Three channels in a vector of four. The fourth value is the next pixel's red; the next store
// overwrites it.
using Pixel = float __attribute__((vector_size(16)));

// kCount is the number of taps, or 0 if it is only known at run time.
template <int kCount>
inline __attribute__((always_inline)) void mix_columns_by(const float* row, int left,
                                                          const Taps& taps, float* out) {
  const int count = kCount > 0 ? kCount : taps.count;
  const float* weights = taps.weights.data();
  for (const int first : taps.first) {
    const float* source = row + (first - left) * 3;
    Pixel sum{};
    for (int k = 0; k < count; ++k, source += 3) {
      Pixel pixel;
      std::memcpy(&pixel, source, sizeof pixel);
      sum += weights[k] * pixel;
    }
    std::memcpy(out, &sum, sizeof sum);
    weights += count;
    out += 3;
  }
}

// `row` begins at pixel `left` of the source. `row` and `out` need one extra value at the end.
TRANSLUTION_WIDE
void mix_columns(const float* row, int left, const Taps& taps, float* out) {
  switch (taps.count) {  // a loop with a constant trip count takes half the time
    case 2:
      return mix_columns_by<2>(row, left, taps, out);
    case 3:
      return mix_columns_by<3>(row, left, taps, out);
    case 4:
      return mix_columns_by<4>(row, left, taps, out);
    default:
      return mix_columns_by<0>(row, left, taps, out);
  }
}

// Weights sum to 1 within rounding, so 255 never becomes 256.
TRANSLUTION_WIDE
void round_values(const float* row, int values, uint8_t* __restrict out) {
  for (int x = 0; x < values; ++x) out[x] = static_cast<uint8_t>(static_cast<int>(row[x] + 0.5f));
}

RgbImage resample_at(const RgbImage& image, const ImageSize& whole, int top, int left,
                     const Box& box, int rows, int cols, bool mirrored) {
  const Taps down = make_taps(whole.rows, box.top, box.rows, rows);
  Taps across = make_taps(whole.cols, box.left, box.cols, cols);
  const int first = across.first.front(), end = across.first.back() + across.count;
  require(down.first.front() >= top && down.first.back() + down.count <= top + image.rows &&
              first >= left && end <= left + image.cols,
          "resample: the box reaches beyond the image");
  if (mirrored) mirror(&across);
  const size_t stride = static_cast<size_t>(image.cols) * 3;
  const int values = (end - first) * 3;
  std::vector<float> tall(values + 1), mixed(cols * 3 + 1);
  RgbImage result{rows, cols, std::vector<uint8_t>(static_cast<size_t>(rows) * cols * 3)};
  for (int r = 0; r < rows; ++r) {
    const uint8_t* source = &image.pixels[(down.first[r] - top) * stride + (first - left) * 3];
    mix_rows(source, stride, down.of(r), down.count, values, tall.data());
    mix_columns(tall.data(), first, across, mixed.data());
    round_values(mixed.data(), cols * 3, result.pixels.data() + static_cast<size_t>(r) * cols * 3);
  }
  return result;
}

}  // namespace

RgbImage resample(const RgbImage& image, const Box& box, int rows, int cols, bool mirrored) {
  return resample_at(image, {image.rows, image.cols}, 0, 0, box, rows, cols, mirrored);
}

RgbImage resample(const ImagePart& part, const Box& box, int rows, int cols, bool mirrored) {
  return resample_at(part.image, part.whole, part.top, part.left, box, rows, cols, mirrored);
}

// With a step of s >= 1 pixels there are at most 2s + 1 taps. They begin up to s/2 + 1/2 before the
// box and end up to s/2 + 3/2 after it; at an edge of the image they are shifted inwards by their
// overhang. The sum is s + 2. With s < 1 there are two taps, and the sum is 3. The margin of
// 3 * max(s, 1) covers both.
Box box_read(const Box& box, int rows, int cols) {
  const double down = 3 * std::max(1.0, box.rows / rows);
  const double across = 3 * std::max(1.0, box.cols / cols);
  return {box.top - down, box.left - across, box.rows + 2 * down, box.cols + 2 * across};
}

}  // namespace translution
