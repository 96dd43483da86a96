#include "translution/data/broken_files.h"

#include <utility>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

int64_t max_broken(int64_t files, double max_share) {
  require(max_share >= 0 && max_share <= 0.5, "max_broken_share: expected 0 to 0.5, got ",
          max_share);
  constexpr double kRounding = 1e-9;  // 0.29 of 100 is 29, not 28
  return static_cast<int64_t>(static_cast<double>(files) * max_share + kRounding);
}

}  // namespace

BrokenFiles::BrokenFiles(std::string folder, std::string what, int64_t files, double max_share,
                         Report report)
    : folder_(std::move(folder)),
      what_(std::move(what)),
      files_(files),
      allowed_(max_broken(files, max_share)),
      report_(std::move(report)) {}

bool BrokenFiles::has(int64_t file) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return recorded_.count(file) > 0;
}

void BrokenFiles::add(int64_t file, const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (recorded_.insert(file).second) {
    lines_.push_back(why);
    if (report_) report_(why);
  }
  const int64_t count = static_cast<int64_t>(lines_.size());
  if (count <= allowed_) return;
  std::string first;
  for (size_t i = 0; i < lines_.size() && i < 3; ++i) first += (i > 0 ? "; " : "") + lines_[i];
  throw std::runtime_error(
      join(folder_, ": ", count, " of ", files_, " ", what_, " (",
           100.0 * static_cast<double>(count) / static_cast<double>(files_),
           " %) are broken, expected at most ", allowed_,
           " (repair or remove them, or raise --max-broken); the first: ", first));
}

std::vector<std::string> BrokenFiles::lines() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return lines_;
}

}  // namespace translution
