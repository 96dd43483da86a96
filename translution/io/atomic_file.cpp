#include "translution/io/atomic_file.h"

#include <unistd.h>

#include "translution/core/error.h"
#include "translution/io/disk.h"

namespace translution {
namespace {

// With the slash, so that a name can be put behind it.
std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

}  // namespace

// Adds to a failure that what was there before is still there.
template <typename Step>
void AtomicFile::guard(const Step& step) const {
  try {
    step();
  } catch (const std::runtime_error& error) {
    if (access(path_.c_str(), F_OK) != 0) throw;
    throw std::runtime_error(join(error.what(), "; the previous file is untouched"));
  }
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  require(!path_.empty() && path_.back() != '/', path_, ": wanted the path of a file");
  guard([&] {
    while (fd_ < 0) {  // a file of that name was left by a killed process with the same id
      temporary_ = directory_of(path_) + disk::temporary_name();
      fd_ = disk::create(temporary_, path_);
    }
  });
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  try {
    disk::remove(temporary_);
  } catch (const std::exception&) {  // what failed before has been reported
  }
}

void AtomicFile::write(std::string_view bytes) {
  guard([&] { disk::write(fd_, bytes, path_); });
}

void AtomicFile::commit() {
  guard([&] {
    disk::sync(fd_, path_);
    disk::rename(temporary_, path_);
  });
  close(fd_);
  fd_ = -1;
  disk::sync_directory(directory_of(path_));
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace translution
