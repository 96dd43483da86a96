#include "translution/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "translution/core/error.h"
#include "translution/io/disk.h"

namespace translution {

using namespace detail;

InputFile::InputFile(const std::string& path)
    // O_NONBLOCK: opening a pipe without a writer would block. It has no effect on regular files.
    : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  ensure(fd_ >= 0, path, ": cannot be opened: ", std::strerror(errno));
  struct stat status {};
  const bool known = fstat(fd_, &status) == 0;
  size_ = known && S_ISREG(status.st_mode) ? status.st_size : -1;
  if (size_ >= 0) return;
  close(fd_);
  throw std::runtime_error(path + ": is not a regular file");
}

InputFile::~InputFile() { close(fd_); }

void InputFile::read(void* to, int64_t count) {
  for (char* next = static_cast<char*>(to); count > 0;) {
    const ssize_t got = ::read(fd_, next, count);
    if (got < 0 && errno == EINTR) continue;
    ensure(got >= 0, path_, ": cannot be read: ", std::strerror(errno));
    ensure(got > 0, path_, ": was truncated while it was read");
    next += got;
    count -= got;
  }
}

void InputFile::seek(int64_t byte) {
  ensure(lseek(fd_, byte, SEEK_SET) == byte, path_, ": cannot be read: ", std::strerror(errno));
}

std::string read_file(const std::string& path, int64_t most) {
  InputFile file(path);
  ensure(file.size() <= most, path, ": has ", file.size(), " bytes, expected at most ", most);
  std::string bytes(file.size(), '\0');
  file.read(bytes.data(), bytes.size());
  return bytes;
}

MappedFile::MappedFile(const std::string& path) {
  const InputFile file(path);
  if (file.size() == 0) return;  // mmap refuses a length of 0
  void* memory = mmap(nullptr, file.size(), PROT_READ, MAP_PRIVATE, file.handle(), 0);
  ensure(memory != MAP_FAILED, path, ": cannot be mapped: ", std::strerror(errno));
  data_ = static_cast<const char*>(memory);
  size_ = file.size();
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(const_cast<char*>(data_), size_);
}

void make_directories(const std::string& path) { disk::make_directories(path); }

}  // namespace translution
