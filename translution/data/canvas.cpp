#include "translution/data/canvas.h"

#include <ATen/ATen.h>

#include "translution/core/error.h"
#include "translution/core/random.h"

namespace translution {

using namespace detail;

namespace {

constexpr uint64_t kPlacement = 0x91ACE;  // key of these draws: independent of others of the seed

// `from` is contiguous [rows,cols]; `to` has a row stride of `stride` values.
void copy_image(const uint8_t* from, int64_t rows, int64_t cols, float* to, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t col = 0; col < cols; ++col)
      to[row * stride + col] = static_cast<float>(from[row * cols + col]) / 255.0f;
}

}  // namespace

CanvasDataset::CanvasDataset(LabelledImages images, const CanvasOptions& options)
    : images_{images.pixels.contiguous(), images.labels.contiguous()}, options_(options) {
  const auto sizes = images_.pixels.sizes();
  require(sizes.size() == 3 && images_.pixels.scalar_type() == torch::kUInt8,
          "canvas: expected uint8 images [n,rows,cols], got ", images_.pixels.scalar_type(), " ",
          sizes);
  require(images_.labels.dim() == 1 && images_.labels.size(0) == sizes[0] &&
              images_.labels.scalar_type() == torch::kInt64,
          "canvas: expected ", sizes[0], " int64 labels, got ", images_.labels.scalar_type(), " ",
          images_.labels.sizes());
  require(options.rows >= sizes[1] && options.cols >= sizes[2], "canvas: ", options.rows, "x",
          options.cols, " is too small for images of ", sizes[1], "x", sizes[2]);
}

std::pair<int64_t, int64_t> CanvasDataset::placement(int64_t epoch, int64_t sample) const {
  const int64_t free_rows = options_.rows - images_.pixels.size(1);
  const int64_t free_cols = options_.cols - images_.pixels.size(2);
  if (options_.placement == Placement::still) return {free_rows / 2, free_cols / 2};
  // 0 is for `moved`, so that epoch 0 of `fresh` has other placements.
  const uint64_t round = options_.placement == Placement::fresh ? epoch + 1 : 0;
  Random random({options_.seed, kPlacement, round, static_cast<uint64_t>(sample)});
  const int64_t row = random.below(free_rows + 1);
  return {row, random.below(free_cols + 1)};
}

Batch CanvasDataset::load(const BatchPlan& plan) const {
  const int64_t count = static_cast<int64_t>(plan.samples.size());
  const int64_t rows = images_.pixels.size(1), cols = images_.pixels.size(2);
  Batch batch{torch::zeros({count, 1, options_.rows, options_.cols}),
              torch::empty({count}, torch::kInt64)};
  const uint8_t* pixels = images_.pixels.data_ptr<uint8_t>();
  const int64_t* labels = images_.labels.data_ptr<int64_t>();
  float* input = batch.input.data_ptr<float>();
  int64_t* target = batch.target.data_ptr<int64_t>();
  for (int64_t b = 0; b < count; ++b) {
    const int64_t sample = plan.samples[b];
    require(0 <= sample && sample < size(), "canvas: expected samples from 0 to ", size() - 1,
            ", got ", sample);
    const auto [row, col] = placement(plan.epoch, sample);
    copy_image(pixels + sample * rows * cols, rows, cols,
               input + (b * options_.rows + row) * options_.cols + col, options_.cols);
    target[b] = labels[sample];
  }
  return batch;
}

std::vector<std::string> CanvasDataset::classes() const {
  return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
}

}  // namespace translution
