#include "translution/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "translution/core/error.h"

namespace translution {
namespace {

// An open file that closes itself.
struct Input {
  explicit Input(const std::string& path)
      : path(path), fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    ensure(fd >= 0, path, ": cannot be opened: ", std::strerror(errno));
    struct stat status {};
    const bool known = fstat(fd, &status) == 0;
    size = known && S_ISREG(status.st_mode) ? status.st_size : -1;
    if (size >= 0) return;
    close(fd);
    throw std::runtime_error(path + ": is not a file");
  }
  ~Input() { close(fd); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const std::string path;
  const int fd;
  int64_t size;
};

}  // namespace

std::string read_file(const std::string& path, int64_t most) {
  const Input file(path);
  ensure(file.size <= most, path, ": has ", file.size, " bytes, wanted at most ", most);
  std::string bytes(file.size, '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = read(file.fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    ensure(count >= 0, path, ": cannot be read: ", std::strerror(errno));
    ensure(count > 0, path, ": became shorter while it was read");
    done += count;
  }
  return bytes;
}

MappedFile::MappedFile(const std::string& path) {
  const Input file(path);
  if (file.size == 0) return;  // nothing to map
  void* memory = mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  ensure(memory != MAP_FAILED, path, ": cannot be mapped: ", std::strerror(errno));
  data_ = static_cast<const char*>(memory);
  size_ = file.size;
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(const_cast<char*>(data_), size_);
}

}  // namespace translution
