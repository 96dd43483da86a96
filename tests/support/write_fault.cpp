#include "tests/support/write_fault.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "translution/core/error.h"
#include "translution/core/message.h"

namespace translution {

using namespace detail;

namespace {

struct Setting {
  Setting() {
    if (const char* text = std::getenv("TRANSLUTION_WRITE_FAULT")) fault = WriteFault::parse(text);
  }

  std::mutex mutex;
  WriteFault fault;
  int64_t calls = 0;
};

Setting& setting() {
  static Setting it;
  return it;
}

// Is this the address of code in our libraries, or in a test that has them linked in? Other code
// writes as ever.
bool is_ours(const void* caller) {
  Dl_info info, here;
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  if (dladdr(reinterpret_cast<const void*>(&is_ours), &here) != 0 &&
      here.dli_fbase == info.dli_fbase)
    return true;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const char* const name = slash == nullptr ? info.dli_fname : slash + 1;
  return std::strncmp(name, "libtranslution", std::strlen("libtranslution")) == 0;
}

// Counts a call of ours, and says what happens to it.
Fault next_fault(const void* caller) {
  if (!is_ours(caller)) return Fault::none;
  auto& now = setting();
  const std::lock_guard lock(now.mutex);
  return ++now.calls == now.fault.call ? now.fault.kind : Fault::none;
}

// A file that grows, such as a log, is not counted: a fault there is a case of its own.
bool grows(int fd) { return (fcntl(fd, F_GETFL) & O_APPEND) != 0; }

template <typename Call>
Call* real(const char* name) {
  return reinterpret_cast<Call*>(dlsym(RTLD_NEXT, name));
}

// The result of the call, or of the fault in its place.
template <typename Call>
int attempt(const void* caller, const Call& call) {
  const Fault fault = next_fault(caller);
  if (fault == Fault::kill) raise(SIGKILL);
  if (fault == Fault::none || fault == Fault::cut) return call();
  errno = fault == Fault::interrupt ? EINTR : ENOSPC;
  return -1;
}

int open_file(const void* caller, const char* path, int flags, mode_t mode) {
  const auto call = [&] { return real<int(const char*, int, ...)>("open")(path, flags, mode); };
  const bool changes = (flags & O_ACCMODE) == O_WRONLY && (flags & O_APPEND) == 0;
  return changes ? attempt(caller, call) : call();
}

}  // namespace

WriteFault WriteFault::parse(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string number = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool counts = !number.empty() && number.size() < 10 &&
                      number.find_first_not_of("0123456789") == std::string::npos;
  require(counts, "TRANSLUTION_WRITE_FAULT: expected a fault and a call, such as enospc:7, got ",
          in_quotes(text));
  return {parse_name("fault", kFaults, text.substr(0, colon)), std::stoll(number)};
}

void set_write_fault(WriteFault fault) {
  auto& now = setting();
  const std::lock_guard lock(now.mutex);
  now.fault = fault;
  now.calls = 0;
}

int64_t count_disk_calls() {
  auto& now = setting();
  const std::lock_guard lock(now.mutex);
  return now.calls;
}

}  // namespace translution

// The calls of translution/io/disk.cpp.
#define CALLER __builtin_return_address(0)

#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return translution::open_file(CALLER, path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  using translution::Fault;
  const auto call = translution::real<ssize_t(int, const void*, size_t)>("write");
  const auto fault = translution::grows(fd) ? Fault::none : translution::next_fault(CALLER);
  if (fault == Fault::none) return call(fd, bytes, count);
  if (fault == Fault::enospc || fault == Fault::interrupt) {
    errno = fault == Fault::enospc ? ENOSPC : EINTR;
    return -1;
  }
  const ssize_t done = call(fd, bytes, (count + 1) / 2);
  if (fault == Fault::kill) raise(SIGKILL);
  if (fault == Fault::cut) return done;
  errno = ENOSPC;
  return -1;
}

int fsync(int fd) {
  const auto call = [&] { return translution::real<int(int)>("fsync")(fd); };
  return translution::grows(fd) ? call() : translution::attempt(CALLER, call);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return translution::attempt(
      CALLER, [&] { return translution::real<int(const char*, mode_t)>("mkdir")(path, mode); });
}

int symlink(const char* target, const char* path) noexcept {
  return translution::attempt(CALLER, [&] {
    return translution::real<int(const char*, const char*)>("symlink")(target, path);
  });
}

int rename(const char* from, const char* to) noexcept {
  return translution::attempt(
      CALLER, [&] { return translution::real<int(const char*, const char*)>("rename")(from, to); });
}

int renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) noexcept {
  return translution::attempt(CALLER, [&] {
    return translution::real<int(int, const char*, int, const char*, unsigned)>("renameat2")(
        from_dir, from, to_dir, to, flags);
  });
}

int remove(const char* path) noexcept {
  return translution::attempt(CALLER,
                              [&] { return translution::real<int(const char*)>("remove")(path); });
}

}  // extern "C"
#pragma GCC visibility pop
