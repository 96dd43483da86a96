#include "translution/io/working_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

WorkingFile::WorkingFile(const std::string& path, int64_t bytes)
    : path_(path),
      fd_(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)),
      size_(bytes) {
  ensure(fd_ >= 0, path, ": cannot be written: ", std::strerror(errno));
  int error = 0;  // allocated now: a full disk would end the process when a page is written back
  do error = posix_fallocate(fd_, 0, bytes);
  while (error == EINTR);
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    error = errno;
  }
  if (memory == MAP_FAILED) {
    close(fd_);
    throw std::runtime_error(join(path, ": cannot take ", bytes, " bytes: ", std::strerror(error),
                                  error == ENOSPC ? "; free some space" : ""));
  }
  data_ = static_cast<char*>(memory);
}

WorkingFile::~WorkingFile() {
  munmap(data_, static_cast<size_t>(size_));
  close(fd_);
}

bool WorkingFile::contains(std::string_view bytes) const {
  return bytes.data() >= data_ && bytes.data() + bytes.size() <= data_ + size_;
}

// The results of these calls are ignored: they are hints, and a failure loses no data.
void WorkingFile::prefetch(std::string_view bytes) const {
  madvise(const_cast<char*>(bytes.data()), bytes.size(), MADV_WILLNEED);
}

void WorkingFile::write_back(std::string_view bytes) const {
  sync_file_range(fd_, bytes.data() - data_, static_cast<off_t>(bytes.size()),
                  SYNC_FILE_RANGE_WRITE);
}

void WorkingFile::release(std::string_view bytes) const {
  // The mapping is shared, so changed pages stay in the system's page cache.
  madvise(const_cast<char*>(bytes.data()), bytes.size(), MADV_DONTNEED);
}

int64_t free_disk_bytes(const std::string& directory) {
  struct statvfs disk {};
  const bool known = statvfs(directory.c_str(), &disk) == 0;
  ensure(known, directory, ": cannot be examined: ", std::strerror(errno));
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

bool share_a_disk(const std::string& a, const std::string& b) {
  struct stat of_a {
  }, of_b{};
  return stat(a.c_str(), &of_a) == 0 && stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev;
}

}  // namespace translution
