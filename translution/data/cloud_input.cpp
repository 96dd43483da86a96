#include "translution/data/cloud_input.h"

#include <algorithm>
#include <utility>

#include "translution/core/error.h"
#include "translution/core/random.h"
#include "translution/core/settings.h"
#include "translution/data/cloud_change.h"
#include "translution/data/cloud_dataset.h"
#include "translution/data/cloud_text.h"
#include "translution/data/molecules.h"
#include "translution/data/ply.h"
#include "translution/io/file.h"

namespace translution {

using namespace detail;

namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 30;
constexpr uint64_t kKeepKey = 0x636c6f75;  // of the points that large clouds keep

bool ends_with(const std::string& path, const std::string& end) {
  return path.size() >= end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
}

std::string features_text(int64_t channels, const std::vector<std::string>& names) {
  std::string text = join(channels, channels == 1 ? " feature" : " features");
  for (const auto& name : names) text += (&name == &names.front() ? ": " : " ") + name;
  return text;
}

NamedCloud read_ply(const std::string& path, const CloudFormat& format) {
  const auto bytes = read_file(path, kMaxBytes);
  auto features = format.features;
  if (features.empty() && format.channels > 1)  // not known: those of the file
    features = parse_ply_header(bytes, path).features();
  return {path, "", parse_ply(bytes, path, features)};
}

NamedCloud read_xyz(const std::string& path, const CloudFormat& format) {
  ensure(!format.features.empty(), path, ": expected a model that knows the names of its ",
         "features; this one has ", features_text(format.channels, {}));
  return {path, "", cloud_of(parse_xyz(read_file(path, kMaxBytes), path), format.features)};
}

std::vector<NamedCloud> read_text(const std::string& path, const CloudFormat& format) {
  auto text = parse_cloud_text(read_file(path, kMaxBytes), path);
  ensure(format.features.empty() || text.features.empty() || text.features == format.features, path,
         ": expected ", features_text(format.channels, format.features), ", got ",
         features_text(static_cast<int64_t>(text.features.size()), text.features));
  std::vector<NamedCloud> clouds;
  for (size_t c = 0; c < text.clouds.size(); ++c) {
    const auto number = text.clouds.size() > 1 ? join(":", c + 1) : "";
    std::string target;
    if (text.targets == CloudTargets::classes) target = text.classes[c];
    if (text.targets == CloudTargets::numbers) target = number_text(text.numbers[c]);
    clouds.push_back({path + number, target, std::move(text.clouds[c])});
  }
  return clouds;
}

class NamedClouds : public CloudDataset {
 public:
  explicit NamedClouds(const std::vector<NamedCloud>& clouds) : clouds_(clouds) {}
  int64_t size() const override { return static_cast<int64_t>(clouds_.size()); }

 protected:
  CloudSample read(int64_t, int64_t sample) const override { return {clouds_[sample].cloud, 0}; }

 private:
  const std::vector<NamedCloud> clouds_;
};

}  // namespace

std::vector<NamedCloud> read_clouds(const std::string& path, const CloudFormat& format) {
  std::vector<NamedCloud> clouds;
  if (ends_with(path, ".ply"))
    clouds.push_back(read_ply(path, format));
  else if (ends_with(path, ".xyz"))
    clouds.push_back(read_xyz(path, format));
  else
    clouds = read_text(path, format);
  for (size_t c = 0; c < clouds.size(); ++c) {
    auto& cloud = clouds[c].cloud;
    ensure(cloud.axes == format.axes, path, ": expected points with ", format.axes,
           format.axes == 1 ? " axis" : " axes", ", got ", cloud.axes);
    ensure(cloud.channels == format.channels, path, ": expected ",
           features_text(format.channels, format.features), ", got ", cloud.channels);
    change_cloud({format.max_points}, {}, Random({kKeepKey, c}), cloud);
  }
  return clouds;
}

std::shared_ptr<const Dataset> clouds_as_data(const std::vector<NamedCloud>& clouds) {
  return std::make_shared<NamedClouds>(clouds);
}

}  // namespace translution
