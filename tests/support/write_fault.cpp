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

struct FaultState {
  FaultState() {
    if (const char* text = std::getenv("TRANSLUTION_WRITE_FAULT")) fault = WriteFault::parse(text);
  }

  std::mutex mutex;
  WriteFault fault;
  int64_t calls = 0;
};

FaultState& fault_state() {
  static FaultState state;
  return state;
}

// Returns whether the address is in our libraries, or in a test that links them. Calls from other
// code are not affected.
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

// Counts a call of our code and returns its fault.
Fault next_fault(const void* caller) {
  if (!is_ours(caller)) return Fault::none;
  auto& state = fault_state();
  const std::lock_guard lock(state.mutex);
  return ++state.calls == state.fault.call ? state.fault.kind : Fault::none;
}

// Files opened with O_APPEND, such as logs, are not counted: faults there are a separate case.
bool is_append_only(int fd) { return (fcntl(fd, F_GETFL) & O_APPEND) != 0; }

template <typename Call>
Call* real(const char* name) {
  return reinterpret_cast<Call*>(dlsym(RTLD_NEXT, name));
}

// Runs the call, or the fault instead. Returns its result.
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
  const bool is_number = !number.empty() && number.size() < 10 &&
                         number.find_first_not_of("0123456789") == std::string::npos;
  require(is_number, "TRANSLUTION_WRITE_FAULT: expected a fault and a call, such as enospc:7, got ",
          in_quotes(text));
  return {parse_name("fault", kFaults, text.substr(0, colon)), std::stoll(number)};
}

void set_write_fault(WriteFault fault) {
  auto& state = fault_state();
  const std::lock_guard lock(state.mutex);
  state.fault = fault;
  state.calls = 0;
}

int64_t count_disk_calls() {
  auto& state = fault_state();
  const std::lock_guard lock(state.mutex);
  return state.calls;
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
  const auto fault =
      translution::is_append_only(fd) ? Fault::none : translution::next_fault(CALLER);
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
  return translution::is_append_only(fd) ? call() : translution::attempt(CALLER, call);
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
