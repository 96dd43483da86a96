#include "translution/data/image_folder_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <utility>

#include "translution/core/error.h"
#include "translution/io/disk.h"

namespace translution {

using namespace detail;

namespace fs = std::filesystem;

namespace {

// A directory beside `root`, in the same file system.
std::string temporary_beside(const std::string& root) {
  require(!root.empty(), "image folder: expected a directory, got an empty path");
  ensure(!fs::exists(fs::symlink_status(root)), root,
         ": exists already; remove it, or name another directory");
  const auto parent = fs::absolute(root).lexically_normal().parent_path().string();
  disk::make_directories(parent);
  return parent + "/" + disk::temporary_name();
}

std::string file_name(int64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "%06lld.png", static_cast<long long>(number));
  return name;
}

// Without a sync: commit() syncs all files together.
void write_new(const std::string& path, const std::string& bytes) {
  const int fd = disk::create(path, path);
  ensure(fd >= 0, path, ": exists already");
  try {
    disk::write(fd, bytes, path);
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
}

}  // namespace

ImageFolderWriter::ImageFolderWriter(std::string root, std::vector<std::string> splits,
                                     std::vector<std::string> classes)
    : root_(std::move(root)),
      temporary_(temporary_beside(root_)),
      splits_(std::move(splits)),
      classes_(std::move(classes)),
      written_(splits_.size()) {
  for (const auto& split : splits_)
    for (const auto& name : classes_)
      disk::make_directories(join(temporary_, "/", split, "/", name));
}

ImageFolderWriter::~ImageFolderWriter() {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

void ImageFolderWriter::add(size_t split, int64_t label, const RgbImage& image) {
  require(label >= 0 && label < static_cast<int64_t>(classes_.size()),
          "image folder: expected a class from 0 to ", classes_.size() - 1, ", got ", label);
  write_new(join(temporary_, "/", splits_.at(split), "/", classes_[label], "/",
                 file_name(written_[split]++)),
            encode_png(image));
}

void ImageFolderWriter::commit() {
  ::sync();
  disk::rename(temporary_, root_);
  disk::sync_directory(fs::absolute(root_).lexically_normal().parent_path().string());
}

}  // namespace translution
