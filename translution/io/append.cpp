#include "translution/io/append.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "translution/core/error.h"

namespace translution {

using namespace detail;

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  ensure(fd_ >= 0, path_, ": cannot be opened for writing: ", std::strerror(errno));
}

AppendFile::~AppendFile() { close(fd_); }

void AppendFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    ensure(count >= 0, path_, ": cannot be written: ", std::strerror(errno));
    bytes.remove_prefix(count);
  }
}

void AppendFile::sync() {
  ensure(fsync(fd_) == 0, path_, ": cannot be synced: ", std::strerror(errno));
}

}  // namespace translution
