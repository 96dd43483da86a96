#include "translution/data/cloud_change.h"

#include <algorithm>
#include <cmath>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

constexpr double kTurn = 6.283185307179586;  // 2 pi

Matrix about_third_axis(Random& random) {
  const double angle = random.uniform(0, kTurn), cosine = std::cos(angle), sine = std::sin(angle);
  return {{{cosine, -sine, 0}, {sine, cosine, 0}, {0, 0, 1}}};
}

// Uniform over all rotations: a unit quaternion.
Matrix any_rotation(Random& random) {
  std::array<double, 4> q{};
  double square = 0;
  for (double& part : q) part = random.normal(), square += part * part;
  const double s = 2 / square;
  const auto [w, x, y, z] = q;
  return {{{1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)},
           {s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)},
           {s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)}}};
}

// The first `axes` numbers at the given places of a row.
void rotate_row(const Matrix& matrix, size_t axes, const std::array<size_t, 3>& at, float* row) {
  std::array<double, 3> rotated{};
  for (size_t a = 0; a < axes; ++a)
    for (size_t b = 0; b < axes; ++b) rotated[a] += matrix[a][b] * row[at[b]];
  for (size_t a = 0; a < axes; ++a) row[at[a]] = static_cast<float>(rotated[a]);
}

}  // namespace

std::optional<std::array<size_t, 3>> normals_in(const std::vector<std::string>& features) {
  std::array<size_t, 3> columns{};
  constexpr const char* kNormals[] = {"nx", "ny", "nz"};
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto found = std::find(features.begin(), features.end(), kNormals[axis]);
    if (found == features.end()) return std::nullopt;
    columns[axis] = static_cast<size_t>(found - features.begin());
  }
  return columns;
}

void keep_points(int64_t count, Random& random, PointCloud& cloud) {
  const int64_t size = cloud.size();
  int64_t kept = 0;
  for (int64_t point = 0; point < size && kept < count; ++point) {
    if (random.below(size - point) >= count - kept) continue;
    std::copy_n(cloud.positions.begin() + point * cloud.axes, cloud.axes,
                cloud.positions.begin() + kept * cloud.axes);
    std::copy_n(cloud.features.begin() + point * cloud.channels, cloud.channels,
                cloud.features.begin() + kept * cloud.channels);
    ++kept;
  }
  cloud.positions.resize(static_cast<size_t>(kept * cloud.axes));
  cloud.features.resize(static_cast<size_t>(kept * cloud.channels));
}

void rotate_cloud(Rotation rotation, const std::optional<std::array<size_t, 3>>& normals,
                  Random& random, PointCloud& cloud) {
  require(cloud.axes > 1, "rotate: expected points with 2 or 3 axes, got ", cloud.axes);
  const bool in_space = rotation == Rotation::any && cloud.axes == 3;
  const Matrix matrix = in_space ? any_rotation(random) : about_third_axis(random);
  for (int64_t point = 0; point < cloud.size(); ++point) {
    rotate_row(matrix, static_cast<size_t>(cloud.axes), {0, 1, 2},
               cloud.positions.data() + point * cloud.axes);
    if (normals && cloud.axes == 3)
      rotate_row(matrix, 3, *normals, cloud.features.data() + point * cloud.channels);
  }
}

void change_cloud(const CloudChange& change, const std::optional<std::array<size_t, 3>>& normals,
                  Random random, PointCloud& cloud) {
  if (change.max_points > 0 && cloud.size() > change.max_points)
    keep_points(change.max_points, random, cloud);
  if (change.rotation != Rotation::none) rotate_cloud(change.rotation, normals, random, cloud);
}

}  // namespace translution
