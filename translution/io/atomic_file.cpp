#include "translution/io/atomic_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "translution/core/error.h"
#include "translution/io/disk.h"

namespace translution {

using namespace detail;

namespace {

constexpr int kMaxLinks = 40;  // Linux's limit

// The path with symbolic links resolved; the file need not exist.
std::string resolve_links(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path target = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(target, error)); ++links) {
    ensure(links < kMaxLinks, path, ": has more than ", kMaxLinks, " symbolic links to follow");
    target = target.parent_path() / fs::read_symlink(target);
  }
  return target.string();
}

// Includes the trailing slash.
std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

}  // namespace

// Adds to an error that the previous file is untouched.
template <typename Step>
void AtomicFile::guard(const Step& step) const {
  try {
    step();
  } catch (const std::runtime_error& error) {
    if (is_direct() || access(path_.c_str(), F_OK) != 0) throw;
    throw std::runtime_error(join(error.what(), "; the previous file is untouched"));
  }
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  require(!path_.empty(), "expected the path of a file, got ''");
  require(path_.back() != '/', path_, ": expected the path of a file");
  struct stat status {};
  const bool exists = stat(path_.c_str(), &status) == 0;
  ensure(!exists || !S_ISDIR(status.st_mode), path_, ": is a directory; name a file in it");
  if (exists && !S_ISREG(status.st_mode)) {
    fd_ = disk::open_existing(path_);
    return;
  }
  target_ = resolve_links(path_);
  guard([&] {
    while (fd_ < 0) {  // the name may exist: a killed process had the same id
      temporary_ = directory_of(target_) + disk::temporary_name();
      fd_ = disk::create(temporary_, path_);
    }
  });
  if (exists) disk::set_mode(fd_, status.st_mode);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  if (is_direct()) return;
  try {
    disk::remove(temporary_);
  } catch (const std::exception&) {  // a destructor must not throw
  }
}

void AtomicFile::write(std::string_view bytes) {
  guard([&] { disk::write(fd_, bytes, path_); });
}

void AtomicFile::commit() {
  if (!is_direct()) {
    guard([&] {
      disk::sync(fd_, path_);
      disk::rename(temporary_, target_);
    });
  }
  close(fd_);
  fd_ = -1;
  if (!is_direct()) disk::sync_directory(directory_of(target_));
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace translution
