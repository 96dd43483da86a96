#include "translution/data/mix.h"

#include <algorithm>
#include <cmath>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

// Marsaglia and Tsang's method: a cubed normal variate with a high acceptance rate. For shape < 1,
// the draw for shape + 1 is scaled down.
double draw_gamma(double shape, Random& random) {
  if (shape < 1) return draw_gamma(shape + 1, random) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal(), v = std::pow(1 + c * x, 3);
    const double u = 1 - random.uniform();
    if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

struct Rectangle {
  int64_t top, left, bottom, right;
};

// Covers 1 - lambda of the area before clipping; the centre is uniform over the image.
Rectangle draw_rectangle(int64_t rows, int64_t cols, double lambda, Random& random) {
  const double side = std::sqrt(1 - lambda);
  const int64_t half_rows = rows * side / 2, half_cols = cols * side / 2;
  const int64_t row = random.below(rows), col = random.below(cols);
  return {std::max<int64_t>(row - half_rows, 0), std::max<int64_t>(col - half_cols, 0),
          std::min(row + half_rows, rows), std::min(col + half_cols, cols)};
}

void mixup(float* a, float* b, int64_t values, float lambda) {
  for (int64_t i = 0; i < values; ++i) {
    const float x = a[i], y = b[i];
    a[i] = lambda * x + (1 - lambda) * y;
    b[i] = lambda * y + (1 - lambda) * x;
  }
}

void cutmix(float* a, float* b, const at::IntArrayRef& sizes, const Rectangle& box) {
  const int64_t channels = sizes[1], rows = sizes[2], cols = sizes[3];
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t row = box.top; row < box.bottom; ++row) {
      const int64_t start = (c * rows + row) * cols;
      std::swap_ranges(a + start + box.left, a + start + box.right, b + start + box.left);
    }
}

// Plain loops: this runs on a worker thread, where LibTorch's operations would start more threads.
// Returns the weight of each image's own class.
float mix_images(torch::Tensor& input, Random& random, const MixOptions& options) {
  const auto sizes = input.sizes();
  const int64_t B = sizes[0], values = B > 0 ? input.numel() / B : 0;
  const bool cut = random.chance(0.5);
  const double alpha = cut ? options.cutmix_alpha : options.mixup_alpha;
  double lambda = draw_beta(alpha, alpha, random);
  Rectangle box{};
  if (cut) {
    box = draw_rectangle(sizes[2], sizes[3], lambda, random);
    const double area = (box.bottom - box.top) * (box.right - box.left);
    lambda = 1 - area / (sizes[2] * sizes[3]);
  }
  for (int64_t i = 0, j = B - 1; i < j; ++i, --j) {
    float *a = input.data_ptr<float>() + i * values, *b = input.data_ptr<float>() + j * values;
    cut ? cutmix(a, b, sizes, box) : mixup(a, b, values, lambda);
  }
  return lambda;
}

}  // namespace

double draw_beta(double a, double b, Random& random) {
  const double x = draw_gamma(a, random), y = draw_gamma(b, random);
  return x + y > 0 ? x / (x + y) : 0.5;
}

void mix_batch(Batch& batch, int64_t classes, Random random, const MixOptions& options) {
  auto& input = batch.input;
  require(input.dim() == 4 && input.scalar_type() == torch::kFloat && input.is_contiguous(),
          "mix_batch: expected contiguous float images [B,channels,rows,cols], got ",
          times(input.sizes()));
  const int64_t B = input.size(0);
  const auto labels = batch.target.contiguous();
  require(labels.scalar_type() == torch::kLong && labels.dim() == 1 && labels.size(0) == B,
          "mix_batch: expected ", B, " int64 classes, got ", times(labels.sizes()));
  const int64_t* label = labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < B; ++i)
    require(label[i] >= 0 && label[i] < classes, "mix_batch: expected a class below ", classes,
            ", got ", label[i]);
  const float own = mix_images(input, random, options);
  batch.target = torch::empty({B, classes}, torch::kFloat);
  float* soft = batch.target.data_ptr<float>();
  std::fill(soft, soft + B * classes, 0.f);
  for (int64_t i = 0; i < B; ++i) {
    soft[i * classes + label[i]] += own;
    soft[i * classes + label[B - 1 - i]] += 1 - own;
  }
}

}  // namespace translution
