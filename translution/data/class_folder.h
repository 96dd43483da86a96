#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace translution {

/// Which files of a class folder are samples, and what messages call them.
struct SampleFiles {
  const char* many;                  ///< ".jpg or .png images"
  const char* one;                   ///< ".jpg, .jpeg or .png image"
  std::vector<std::string> endings;  ///< in lower case: ".jpg"
};

/// The samples of folder/<class>/<any name>. Classes are numbered by name in byte order, samples by
/// class and then by name. Hidden files and other file extensions are ignored.
class ClassFolder {
 public:
  /// Throws std::runtime_error if the folder is missing, has no classes, or a class has no samples.
  ClassFolder(const std::string& folder, const SampleFiles& files);

  int64_t size() const { return static_cast<int64_t>(files_.size()); }
  const std::string& folder() const { return folder_; }
  const std::vector<std::string>& classes() const { return classes_; }
  std::vector<int64_t> labels() const;
  std::string path(int64_t sample) const;
  int64_t class_of(int64_t sample) const { return files_.at(sample).label; }

 private:
  struct File {
    int64_t label;
    std::string name;
  };

  void scan_class(int64_t label, const SampleFiles& files);

  const std::string folder_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
};

/// Throws std::runtime_error unless root/train and root/val are folders.
void require_parts(const std::string& root, const SampleFiles& files);

/// Throws std::runtime_error if a class exists in only one of them.
void require_same_classes(const ClassFolder& train, const ClassFolder& val);

}  // namespace translution
