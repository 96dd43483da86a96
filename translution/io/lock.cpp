#include "translution/io/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

namespace {

// The process that holds the lock, from the id that it wrote to the file.
std::string holder(int fd) {
  char number[16] = {};
  const ssize_t count = pread(fd, number, sizeof number - 1, 0);
  const size_t digits = count > 0 ? std::strspn(number, "0123456789") : 0;
  return digits > 0 ? "process " + std::string(number, digits) : "another process";
}

std::string try_lock(int fd) {
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return join("cannot be locked: ", std::strerror(errno));
    return join("is in use by ", holder(fd), "; wait until it ends, or choose another directory");
  }
  return "";
}

}  // namespace

DirectoryLock::DirectoryLock(const std::string& directory) {
  const std::string path = directory + kFile;
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ensure(fd_ >= 0, path, ": cannot be opened: ", std::strerror(errno));
  const std::string obstacle = try_lock(fd_);
  if (!obstacle.empty()) close(fd_);
  ensure(obstacle.empty(), directory, ": ", obstacle);
  // The id is only for the message above, so ignore failures such as a full disk.
  const std::string number = join(getpid(), "\n");
  if (ftruncate(fd_, 0) != 0 || pwrite(fd_, number.data(), number.size(), 0) < 0) return;
}

DirectoryLock::~DirectoryLock() { close(fd_); }

}  // namespace translution
