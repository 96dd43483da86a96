#include "translution/data/class_folder.h"

#include <algorithm>
#include <filesystem>

#include "translution/core/error.h"
#include "translution/data/class_names.h"

namespace translution {

using namespace detail;

namespace {

namespace fs = std::filesystem;

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

bool is_sample(const fs::directory_entry& entry, const SampleFiles& files) {
  std::string ending = entry.path().extension().string();
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 'a' - 'A');
  std::error_code unreadable;
  return std::find(files.endings.begin(), files.endings.end(), ending) != files.endings.end() &&
         entry.is_regular_file(unreadable);
}

void check_has_classes_of(const ClassFolder& a, const ClassFolder& b) {
  for (const std::string& name : b.classes())
    ensure(std::binary_search(a.classes().begin(), a.classes().end(), name), a.folder(),
           ": has no class '", name, "', which ", b.folder(), " has; both need the same folders");
}

}  // namespace

ClassFolder::ClassFolder(const std::string& folder, const SampleFiles& files) : folder_(folder) {
  ensure(is_folder(folder), folder, ": is not a folder; expected one with a subfolder of ",
         files.many, " per class");
  classes_ = names_in(folder, is_folder);
  ensure(!classes_.empty(), folder, ": has no subfolders; expected one per class, with ",
         files.many);
  for (const std::string& name : classes_)
    ensure(is_utf8(name), folder, ": the name of the class folder '", escape_bytes(name),
           "' is not UTF-8; rename it");
  for (size_t c = 0; c < classes_.size(); ++c) scan_class(static_cast<int64_t>(c), files);
}

void ClassFolder::scan_class(int64_t label, const SampleFiles& files) {
  const std::string folder = folder_ + "/" + classes_[label];
  auto names = names_in(folder, [&](const auto& entry) { return is_sample(entry, files); });
  ensure(!names.empty(), folder, ": has no ", files.one, "; add some, or remove the folder");
  for (std::string& name : names) files_.push_back({label, std::move(name)});
}

std::vector<int64_t> ClassFolder::labels() const {
  std::vector<int64_t> labels;
  for (const File& file : files_) labels.push_back(file.label);
  return labels;
}

std::string ClassFolder::path(int64_t sample) const {
  const File& file = files_.at(sample);
  return folder_ + "/" + classes_[file.label] + "/" + file.name;
}

void require_parts(const std::string& root, const SampleFiles& files) {
  for (const char* part : {"train", "val"})
    ensure(is_folder(root + "/" + part), root, ": has no folder ", part, "; expected ", root,
           "/train/<class>/ and ", root, "/val/<class>/ with ", files.many);
}

void require_same_classes(const ClassFolder& train, const ClassFolder& val) {
  check_has_classes_of(val, train);
  check_has_classes_of(train, val);
}

}  // namespace translution
