#include "translution/io/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "translution/core/error.h"

namespace translution::disk {

using namespace detail;

namespace {

const char* advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose a path with write permission";
    case ENOENT:
      return "; create the directory first";
    case EIO:
      return "; check the disk";
    default:
      return "";
  }
}

void check(bool done, const std::string& path, const char* what) {
  if (done) return;
  const int error = errno;
  throw std::runtime_error(join(path, ": cannot be ", what, ": ", strerror(error), advice(error)));
}

// Repeats the call while signals interrupt it; returns its result.
template <typename Call>
auto retry(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace

int create(const std::string& path, const std::string& shown) {
  const int fd =
      retry([&] { return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  check(fd >= 0 || errno == EEXIST, shown, "written");
  return fd;
}

int open_existing(const std::string& path) {
  const int fd = retry([&] { return open(path.c_str(), O_WRONLY | O_CLOEXEC); });
  check(fd >= 0, path, "written");
  return fd;
}

void set_mode(int fd, mode_t mode) {
  if (fchmod(fd, mode & 07777) != 0) return;
}

void write(int fd, std::string_view bytes, const std::string& shown) {
  while (!bytes.empty()) {
    const ssize_t count = retry([&] { return ::write(fd, bytes.data(), bytes.size()); });
    check(count >= 0, shown, "written");
    bytes.remove_prefix(count);
  }
}

void seek(int fd, int64_t byte, const std::string& shown) {
  check(lseek(fd, byte, SEEK_SET) == byte, shown, "written");
}

void sync(int fd, const std::string& shown) {
  check(retry([&] { return fsync(fd); }) == 0, shown, "synced to disk");
}

void sync_directory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  check(fd >= 0, path, "opened");
  const bool done = retry([&] { return fsync(fd); }) == 0;
  const int error = errno;
  close(fd);
  errno = error;
  check(done, path, "synced to disk");
}

void make_directory(const std::string& path) {
  check(retry([&] { return mkdir(path.c_str(), 0777); }) == 0, path, "created");
}

void make_directories(const std::string& path) {
  namespace fs = std::filesystem;
  require(!path.empty(), "expected a directory, got ''");
  std::error_code error;
  if (fs::is_directory(path, error)) return;
  const auto parent = fs::path(path).parent_path().string();
  if (!parent.empty() && !fs::exists(parent, error)) make_directories(parent);
  fs::create_directory(path, error);
  ensure(!error, path, ": cannot be created: ", error.message(), advice(error.value()));
  sync_directory(parent.empty() ? "." : parent);
}

void make_link(const std::string& target, const std::string& path) {
  check(retry([&] { return symlink(target.c_str(), path.c_str()); }) == 0, path, "linked");
}

void rename(const std::string& from, const std::string& to) {
  check(retry([&] { return ::rename(from.c_str(), to.c_str()); }) == 0, to, "renamed into place");
}

void exchange(const std::string& a, const std::string& b) {
  const auto call = [&] {
    return renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
  };
  check(retry(call) == 0, b, "replaced");
}

void remove(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error)))
    for (const auto& entry : fs::directory_iterator(path, error))
      disk::remove(entry.path().string());
  check(retry([&] { return std::remove(path.c_str()); }) == 0, path, "removed");
}

std::string temporary_name() {
  static std::atomic<int64_t> count{0};
  return join(kTemporary, getpid(), "-", count++);
}

}  // namespace translution::disk
