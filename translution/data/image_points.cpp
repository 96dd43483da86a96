#include "translution/data/image_points.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

// Keys of these draws: independent of others of the seed.
constexpr uint64_t kPoints = 0x901275, kView = 0x71E3;

constexpr int64_t kMinPoints = 64, kMaxPoints = 96;
constexpr int64_t kMinClutter = 16, kMaxClutter = 32;
constexpr double kMinScale = 0.7, kMaxScale = 1.4;
constexpr double kMaxAngle = 0.78539816339744831;  // 45 degrees

int64_t draw_between(int64_t least, int64_t most, Random& random) {
  return least + random.below(most - least + 1);
}

void add_point(double row, double col, float feature, PointCloud& cloud) {
  cloud.positions.push_back(static_cast<float>(row));
  cloud.positions.push_back(static_cast<float>(col));
  cloud.features.push_back(feature);
}

}  // namespace

ImagePointsDataset::ImagePointsDataset(LabelledImages images, const ImagePointsOptions& options)
    : images_{images.pixels.contiguous(), images.labels.contiguous()}, options_(options) {
  const auto sizes = images_.pixels.sizes();
  require(options.rows >= sizes[1] && options.cols >= sizes[2], "canvas: ", options.rows, "x",
          options.cols, " is too small for images of ", sizes[1], "x", sizes[2]);
}

std::vector<std::string> ImagePointsDataset::classes() const {
  return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
}

// A black image counts as uniform.
PointCloud ImagePointsDataset::draw_points(int64_t sample, Random random) const {
  const int64_t rows = images_.pixels.size(1), cols = images_.pixels.size(2), size = rows * cols;
  const uint8_t* pixels = images_.pixels.data_ptr<uint8_t>() + sample * size;
  const bool black = std::all_of(pixels, pixels + size, [](uint8_t pixel) { return pixel == 0; });
  std::vector<int64_t> sums;  // of the pixels up to each
  int64_t sum = 0;
  for (int64_t p = 0; p < size; ++p) sums.push_back(sum += black ? 1 : pixels[p]);

  PointCloud cloud{2, 1, {}, {}};
  const int64_t count = draw_between(kMinPoints, kMaxPoints, random);
  for (int64_t n = 0; n < count; ++n) {
    const int64_t at = random.below(sum);
    const int64_t pixel = std::upper_bound(sums.begin(), sums.end(), at) - sums.begin();
    const double row = static_cast<double>(pixel / cols) + random.uniform();
    const double col = static_cast<double>(pixel % cols) + random.uniform();
    add_point(row, col, static_cast<float>(pixels[pixel]) / 255.0f, cloud);
  }
  return cloud;
}

ImagePointsDataset::View ImagePointsDataset::draw_view(Random& random) const {
  View view;
  if (options_.placement == Placement::scaled) view.scale = random.uniform(kMinScale, kMaxScale);
  if (options_.placement == Placement::rotated) view.angle = random.uniform(-kMaxAngle, kMaxAngle);
  const bool centred = options_.placement == Placement::still;
  const auto corner = [&](int64_t canvas, int64_t side) {
    const double room = static_cast<double>(canvas) - view.scale * static_cast<double>(side);
    return room * (centred || room < 0 ? 0.5 : random.uniform());
  };
  view.row = corner(options_.rows, images_.pixels.size(1));
  view.col = corner(options_.cols, images_.pixels.size(2));
  return view;
}

void ImagePointsDataset::place(const View& view, PointCloud& cloud) const {
  const double middle_row = 0.5 * static_cast<double>(images_.pixels.size(1));
  const double middle_col = 0.5 * static_cast<double>(images_.pixels.size(2));
  const double cosine = std::cos(view.angle), sine = std::sin(view.angle);
  for (size_t p = 0; p < cloud.positions.size(); p += 2) {
    const double row = cloud.positions[p] - middle_row, col = cloud.positions[p + 1] - middle_col;
    cloud.positions[p] =
        static_cast<float>(view.row + view.scale * (middle_row + cosine * row - sine * col));
    cloud.positions[p + 1] =
        static_cast<float>(view.col + view.scale * (middle_col + sine * row + cosine * col));
  }
}

// Points anywhere on the canvas. Each has the brightness of a point of the image, so that features
// do not tell them apart.
void ImagePointsDataset::add_clutter(Random& random, PointCloud& cloud) const {
  const int64_t points = cloud.size();
  const int64_t count = draw_between(kMinClutter, kMaxClutter, random);
  for (int64_t n = 0; n < count; ++n) {
    const double row = random.uniform(0, static_cast<double>(options_.rows));
    const double col = random.uniform(0, static_cast<double>(options_.cols));
    add_point(row, col, cloud.features[random.below(points)], cloud);
  }
}

CloudSample ImagePointsDataset::read(int64_t epoch, int64_t sample) const {
  // 0 is for what stays the same, so that epoch 0 has other draws.
  const uint64_t seed = options_.seed, s = sample, round = epoch + 1;
  Random view({seed, kView, options_.fresh ? round : 0, s});
  auto cloud = draw_points(sample, Random({seed, kPoints, options_.redraw ? round : 0, s}));
  place(draw_view(view), cloud);
  if (options_.placement == Placement::cluttered) add_clutter(view, cloud);
  return {std::move(cloud), static_cast<double>(images_.labels.data_ptr<int64_t>()[sample])};
}

}  // namespace translution
