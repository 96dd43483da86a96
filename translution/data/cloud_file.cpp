#include "translution/data/cloud_file.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "translution/core/error.h"
#include "translution/io/file.h"

namespace translution {

using namespace detail;

namespace {

std::shared_ptr<const CloudText> read_text_with_targets(const std::string& path) {
  auto text = std::make_shared<CloudText>(parse_cloud_text(read_file(path), path));
  ensure(text->targets != CloudTargets::none, path,
         ": expected 'targets classes' or 'targets numbers' to train or evaluate on, got 'targets "
         "none'");
  return text;
}

// "axes 3, targets numbers, features H C"
std::string header_text(const CloudText& text) {
  std::string names;
  for (const auto& name : text.features) names += " " + name;
  return join("axes ", text.axes, ", targets ",
              text.targets == CloudTargets::classes ? "classes" : "numbers",
              names.empty() ? ", no features" : ", features", names);
}

}  // namespace

TargetScale target_scale_of(const std::vector<double>& numbers, const std::string& name) {
  const auto count = static_cast<double>(numbers.size());
  TargetScale result;
  for (const double number : numbers) result.mean += number / count;
  double square = 0;
  for (const double number : numbers)
    square += (number - result.mean) * (number - result.mean) / count;
  result.scale = std::sqrt(square);
  ensure(*std::min_element(numbers.begin(), numbers.end()) <
             *std::max_element(numbers.begin(), numbers.end()),
         name, ": expected different targets, all are ", numbers.front());
  ensure(std::isfinite(result.scale) && result.scale > 0, name,
         ": the standard deviation of the targets is ", result.scale,
         ", expected a positive number; scale the targets");
  return result;
}

CloudFileDataset::CloudFileDataset(std::shared_ptr<const CloudText> text,
                                   std::vector<std::string> classes, const TargetScale& scale,
                                   const CloudChange& change, uint64_t seed)
    : text_(std::move(text)),
      classes_(std::move(classes)),
      change_(change),
      seed_(seed),
      normals_(normals_in(text_->features)) {
  for (const auto& name : text_->classes)
    targets_.push_back(static_cast<double>(
        std::lower_bound(classes_.begin(), classes_.end(), name) - classes_.begin()));
  for (const double number : text_->numbers)
    targets_.push_back((number - scale.mean) / scale.scale);
}

std::vector<int64_t> CloudFileDataset::labels() const {
  std::vector<int64_t> labels;
  if (targets_are_classes())
    for (const double target : targets_) labels.push_back(static_cast<int64_t>(target));
  return labels;
}

CloudSample CloudFileDataset::read(int64_t epoch, int64_t sample) const {
  const uint64_t s = sample, round = change_.redraw ? epoch + 1 : 0;
  CloudSample result{text_->clouds[sample], targets_[sample]};
  change_cloud(change_, normals_, Random({seed_, round, s}), result.cloud);
  return result;
}

CloudFiles read_cloud_files(const std::string& directory) {
  const std::string train = directory + "/train.txt", val = directory + "/val.txt";
  CloudFiles files{read_text_with_targets(train), read_text_with_targets(val), {}, {}};
  ensure(header_text(*files.train) == header_text(*files.val), val, ": expected ",
         header_text(*files.train), " as in train.txt, got ", header_text(*files.val));
  const std::set<std::string> names(files.train->classes.begin(), files.train->classes.end());
  for (const auto& name : files.val->classes)
    ensure(names.count(name) > 0, val, ": has the class '", name, "', which train.txt has not");
  files.classes.assign(names.begin(), names.end());
  if (files.classes.empty()) files.scale = target_scale_of(files.train->numbers, train);
  return files;
}

}  // namespace translution
