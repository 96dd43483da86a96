#include "translution/data/image_folder.h"

#include "translution/core/error.h"
#include "translution/data/augment.h"
#include "translution/data/image_file.h"
#include "translution/data/mix.h"
#include "translution/ops/large.h"

namespace translution {

using namespace detail;

namespace {

// Last part of the random key, after (seed, epoch, sample) or (seed, epoch, index): the use.
constexpr uint64_t kAugment = 0, kReplacement = 1, kMixing = 2;

const SampleFiles& image_files() {
  static const SampleFiles files{
      ".jpg or .png images", ".jpg, .jpeg or .png image", {".jpg", ".jpeg", ".png"}};
  return files;
}

RgbImage augmented_image(std::string_view bytes, const std::string& name, int size, Augment augment,
                         Random& random) {
  if (augment == Augment::none) return evaluation_image(bytes, name, size);
  RandAugmentOptions options;
  if (augment == Augment::light) options.operations = 0;
  return training_image(bytes, name, size, options, random);
}

}  // namespace

ImageFolderDataset::ImageFolderDataset(const std::string& folder, const ImageFolderOptions& options)
    : files_(folder, image_files()),
      options_(options),
      broken_(folder, "images", files_.size(), options.max_broken_share, options.report_broken) {
  require(options.image_size >= 1 && options.image_size <= 4096,
          "image_size: expected 1 to 4096, got ", options.image_size);
}

bool ImageFolderDataset::read_sample(int64_t sample, Random random, float* out) const {
  if (broken_.has(sample)) return false;
  const std::string name = path(sample);
  RgbImage image;
  try {
    image = augmented_image(read_image_bytes(name), name, options_.image_size, options_.augment,
                            random);
  } catch (const std::runtime_error& error) {
    broken_.add(sample, error.what());
    return false;
  }
  normalise(image, out);
  return true;
}

int64_t ImageFolderDataset::fill(int64_t epoch, int64_t sample, float* out) const {
  const uint64_t seed = options_.seed, e = epoch, s = sample;
  const Random augment({seed, e, s, kAugment});
  Random replacement({seed, e, s, kReplacement});
  // Terminates: BrokenFiles throws once more than half of the images are broken.
  while (!read_sample(sample, augment, out)) sample = replacement.below(size());
  return class_of(sample);
}

Batch ImageFolderDataset::load(const BatchPlan& plan) const {
  const int64_t B = plan.samples.size(), side = options_.image_size;
  Batch batch{large_empty({B, 3, side, side}, torch::kFloat), torch::empty({B}, torch::kLong)};
  auto* input = batch.input.data_ptr<float>();
  auto* target = batch.target.data_ptr<int64_t>();
  for (int64_t b = 0; b < B; ++b)
    target[b] = fill(plan.epoch, plan.samples[b], input + b * 3 * side * side);
  if (options_.augment == Augment::full) {
    const uint64_t epoch = plan.epoch, index = plan.index;
    mix_batch(batch, files_.classes().size(), Random({options_.seed, epoch, index, kMixing}));
  }
  return batch;
}

ImageFolders open_image_folders(const std::string& root, ImageFolderOptions options) {
  require_parts(root, image_files());
  ImageFolders folders;
  folders.train = std::make_unique<ImageFolderDataset>(root + "/train", options);
  options.augment = Augment::none;
  folders.val = std::make_unique<ImageFolderDataset>(root + "/val", options);
  require_same_classes(folders.train->files(), folders.val->files());
  return folders;
}

}  // namespace translution
