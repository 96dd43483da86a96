#include "translution/data/image_folder.h"

#include <algorithm>
#include <filesystem>

#include "translution/core/error.h"
#include "translution/data/augment.h"
#include "translution/data/class_names.h"
#include "translution/data/image_file.h"
#include "translution/data/mix.h"
#include "translution/ops/large.h"

namespace translution {

using namespace detail;

namespace {

namespace fs = std::filesystem;

// Last part of the random key, after (seed, epoch, sample) or (seed, epoch, index): the use.
constexpr uint64_t kAugment = 0, kReplacement = 1, kMixing = 2;

bool is_image_name(const fs::path& name) {
  std::string extension = name.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

// The names in a folder in byte order, without hidden ones.
template <typename Filter>
std::vector<std::string> names_in(const std::string& folder, Filter filter) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name[0] != '.' && filter(*entry)) names.push_back(name);
  }
  ensure(!error, folder, ": cannot be listed: ", error.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_folder(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_directory(path, unreadable);
}

bool is_image(const fs::directory_entry& entry) {
  std::error_code unreadable;
  return is_image_name(entry.path()) && entry.is_regular_file(unreadable);
}

RgbImage augmented_image(std::string_view bytes, const std::string& name, int size, Augment augment,
                         Random& random) {
  if (augment == Augment::none) return evaluation_image(bytes, name, size);
  RandAugmentOptions options;
  if (augment == Augment::light) options.operations = 0;
  return training_image(bytes, name, size, options, random);
}

int64_t max_broken(int64_t images, double max_share) {
  require(max_share >= 0 && max_share <= 0.5, "max_broken_share: expected 0 to 0.5, got ",
          max_share);
  constexpr double kRounding = 1e-9;  // 0.29 of 100 is 29, not 28
  return static_cast<int64_t>(static_cast<double>(images) * max_share + kRounding);
}

void check_has_classes_of(const ImageFolderDataset& a, const ImageFolderDataset& b) {
  const auto classes = a.classes();
  for (const std::string& name : b.classes())
    ensure(std::binary_search(classes.begin(), classes.end(), name), a.folder(), ": has no class '",
           name, "', which ", b.folder(), " has; both need the same folders");
}

}  // namespace

BrokenImages::BrokenImages(std::string folder, int64_t images, double max_share, Report report)
    : folder_(std::move(folder)),
      images_(images),
      allowed_(max_broken(images, max_share)),
      report_(std::move(report)) {}

bool BrokenImages::has(int64_t image) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return recorded_.count(image) > 0;
}

void BrokenImages::add(int64_t image, const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (recorded_.insert(image).second) {
    lines_.push_back(why);
    if (report_) report_(why);
  }
  const int64_t count = lines_.size();
  if (count <= allowed_) return;
  std::string first;
  for (size_t i = 0; i < lines_.size() && i < 3; ++i) first += (i > 0 ? "; " : "") + lines_[i];
  throw std::runtime_error(
      join(folder_, ": ", count, " of ", images_, " images (", 100.0 * count / images_,
           " %) are broken, expected at most ", allowed_,
           " (repair or remove them, or raise --max-broken); the first: ", first));
}

std::vector<std::string> BrokenImages::lines() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return lines_;
}

ImageFolderDataset::ImageFolderDataset(const std::string& folder, const ImageFolderOptions& options)
    : folder_(folder), options_(options) {
  require(options.image_size >= 1 && options.image_size <= 4096,
          "image_size: expected 1 to 4096, got ", options.image_size);
  ensure(is_folder(folder), folder,
         ": is not a folder; expected one with a subfolder of .jpg or .png images per class");
  classes_ = names_in(folder, is_folder);
  ensure(!classes_.empty(), folder,
         ": has no subfolders; expected one per class, with .jpg or .png images");
  for (const std::string& name : classes_)
    ensure(is_utf8(name), folder, ": the name of the class folder '", escape_bytes(name),
           "' is not UTF-8; rename it");
  for (const std::string& name : classes_) scan_class(name);
  broken_ = std::make_unique<BrokenImages>(folder, size(), options.max_broken_share,
                                           options.report_broken);
}

void ImageFolderDataset::scan_class(const std::string& name) {
  const std::string folder = folder_ + "/" + name;
  auto names = names_in(folder, is_image);
  ensure(!names.empty(), folder,
         ": has no .jpg, .jpeg or .png image; add some, or remove the folder");
  const int64_t label = &name - classes_.data();
  for (std::string& file : names) files_.push_back({label, std::move(file)});
}

std::vector<int64_t> ImageFolderDataset::labels() const {
  std::vector<int64_t> labels;
  for (const File& file : files_) labels.push_back(file.label);
  return labels;
}

std::string ImageFolderDataset::path(int64_t sample) const {
  const File& file = files_.at(sample);
  return folder_ + "/" + classes_[file.label] + "/" + file.name;
}

bool ImageFolderDataset::read_sample(int64_t sample, Random random, float* out) const {
  if (broken_->has(sample)) return false;
  const std::string name = path(sample);
  RgbImage image;
  try {
    image = augmented_image(read_image_bytes(name), name, options_.image_size, options_.augment,
                            random);
  } catch (const std::runtime_error& error) {
    broken_->add(sample, error.what());
    return false;
  }
  normalise(image, out);
  return true;
}

int64_t ImageFolderDataset::fill(int64_t epoch, int64_t sample, float* out) const {
  const uint64_t seed = options_.seed, e = epoch, s = sample;
  const Random augment({seed, e, s, kAugment});
  Random replacement({seed, e, s, kReplacement});
  // Terminates: BrokenImages throws once more than half of the images are broken.
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
    const uint64_t epoch = plan.epoch, index = plan.index, shard = plan.shard;
    mix_batch(batch, classes_.size(),
              shard == 0 ? Random({options_.seed, epoch, index, kMixing})
                         : Random({options_.seed, epoch, index, kMixing, shard}));
  }
  return batch;
}

ImageFolders open_image_folders(const std::string& root, ImageFolderOptions options) {
  for (const char* part : {"train", "val"})
    ensure(is_folder(root + "/" + part), root, ": has no folder ", part, "; expected ", root,
           "/train/<class>/ and ", root, "/val/<class>/ with .jpg or .png images");
  ImageFolders folders;
  folders.train = std::make_unique<ImageFolderDataset>(root + "/train", options);
  options.augment = Augment::none;
  folders.val = std::make_unique<ImageFolderDataset>(root + "/val", options);
  check_has_classes_of(*folders.val, *folders.train);
  check_has_classes_of(*folders.train, *folders.val);
  return folders;
}

}  // namespace translution
