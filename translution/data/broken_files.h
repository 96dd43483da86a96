#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace translution {

/// Records the files of a folder that could not be read. Thread-safe.
class BrokenFiles {
 public:
  using Report = std::function<void(const std::string& line)>;

  /// At most floor(files * max_share) files may be broken: of 25, none for 0.01 and one for 0.04.
  /// `what` they are, for messages: "images". `report`, if set, is called once per broken file, by
  /// one thread at a time.
  BrokenFiles(std::string folder, std::string what, int64_t files, double max_share, Report report);

  bool has(int64_t file) const;
  /// Records a broken file and the line that says why. Throws std::runtime_error if there are too
  /// many.
  void add(int64_t file, const std::string& why);
  /// The lines so far, in order of arrival.
  std::vector<std::string> lines() const;

 private:
  const std::string folder_, what_;
  const int64_t files_, allowed_;
  const Report report_;
  mutable std::mutex mutex_;
  std::unordered_set<int64_t> recorded_;
  std::vector<std::string> lines_;
};

}  // namespace translution
