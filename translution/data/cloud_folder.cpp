#include "translution/data/cloud_folder.h"

#include <algorithm>
#include <utility>

#include "translution/core/error.h"
#include "translution/data/ply.h"
#include "translution/io/file.h"

namespace translution {

using namespace detail;

namespace {

// Last part of the random key, after (seed, epoch, sample): the use.
constexpr uint64_t kChange = 0, kOtherFile = 1;

constexpr int64_t kMaxPlyBytes = int64_t{1} << 30;

const SampleFiles& ply_files() {
  static const SampleFiles files{".ply files", ".ply file", {".ply"}};
  return files;
}

PlyHeader header_of_file(const std::string& path) {
  InputFile file(path);
  std::string bytes(static_cast<size_t>(std::min(file.size(), kMaxPlyHeader + 1)), '\0');
  file.read(bytes.data(), static_cast<int64_t>(bytes.size()));
  return parse_ply_header(bytes, path);
}

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : " ") + name;
  return text.empty() ? "none" : text;
}

bool same_names(std::vector<std::string> a, std::vector<std::string> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

}  // namespace

CloudFolderDataset::CloudFolderDataset(const std::string& folder, const CloudFolderOptions& options,
                                       std::optional<std::vector<std::string>> features)
    : files_(folder, ply_files()),
      options_(options),
      broken_(folder, "clouds", files_.size(), options.max_broken_share, options.report_broken),
      features_(std::move(features)) {
  for (int64_t sample = 0; sample < size(); ++sample) check_features(sample);
  normals_ = normals_in(*features_);
}

void CloudFolderDataset::check_features(int64_t sample) {
  const auto path = files_.path(sample);
  std::vector<std::string> features;
  try {
    features = header_of_file(path).features();
  } catch (const std::runtime_error& error) {
    broken_.add(sample, error.what());
    return;
  }
  if (!features_) features_ = features;
  ensure(same_names(*features_, features), path, ": expected the properties ",
         names_text(*features_), " besides x, y and z, as in the first file, got ",
         names_text(features), "; all files need the same");
}

std::optional<PointCloud> CloudFolderDataset::read_file_of(int64_t sample) const {
  if (broken_.has(sample)) return std::nullopt;
  const auto path = files_.path(sample);
  try {
    return parse_ply(read_file(path, kMaxPlyBytes), path, *features_);
  } catch (const std::runtime_error& error) {
    broken_.add(sample, error.what());
    return std::nullopt;
  }
}

CloudSample CloudFolderDataset::read(int64_t epoch, int64_t sample) const {
  const uint64_t seed = options_.seed, e = epoch, s = sample;
  Random other({seed, e, s, kOtherFile});
  auto cloud = read_file_of(sample);
  // Terminates: BrokenFiles throws once more than half of the files are broken.
  while (!cloud) cloud = read_file_of(sample = other.below(size()));
  const uint64_t round = options_.change.redraw ? e + 1 : 0;
  change_cloud(options_.change, normals_, Random({seed, round, s, kChange}), *cloud);
  return {std::move(*cloud), static_cast<double>(files_.class_of(sample))};
}

CloudFolders open_cloud_folders(const std::string& root, CloudFolderOptions options) {
  require_parts(root, ply_files());
  CloudFolders folders;
  folders.train = std::make_unique<CloudFolderDataset>(root + "/train", options);
  options.change.rotation = Rotation::none;
  options.change.redraw = false;
  folders.val =
      std::make_unique<CloudFolderDataset>(root + "/val", options, folders.train->features());
  require_same_classes(folders.train->files(), folders.val->files());
  return folders;
}

}  // namespace translution
