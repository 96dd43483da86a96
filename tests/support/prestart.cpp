// Loaded into the program with LD_PRELOAD: calls of `main` on request (prestart.h).

#include "tests/support/prestart.h"

#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace translution::prestart {
namespace {

using Main = int (*)(int, char**, char**);
Main program_main = nullptr;

struct Call {
  int streams[3] = {-1, -1, -1};
  std::vector<std::string> parts;  // what is inherited, directory, number of arguments, arguments,
                                   // environment
};

bool read_all(int from, char* to, size_t size) {
  for (ssize_t count = 0; size > 0; to += count, size -= static_cast<size_t>(count))
    if ((count = read(from, to, size)) <= 0) return false;
  return true;
}

bool receive(int caller, Call& call) {
  uint32_t size = 0;
  iovec data{&size, sizeof size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof call.streams)];
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  if (recvmsg(caller, &message, MSG_WAITALL) != sizeof size) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return false;
  std::memcpy(call.streams, CMSG_DATA(header), sizeof call.streams);
  std::string text(size, '\0');
  if (!read_all(caller, text.data(), size)) return false;
  for (size_t begin = 0, end; (end = text.find('\0', begin)) != std::string::npos; begin = end + 1)
    call.parts.push_back(text.substr(begin, end - begin));
  return call.parts.size() >= 3;
}

// The cores that the caller may use are the child's, too.
void take_cores(int caller) {
  ucred who{};
  socklen_t size = sizeof who;
  cpu_set_t cores;
  if (getsockopt(caller, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
      sched_getaffinity(who.pid, sizeof cores, &cores) != 0 ||
      sched_setaffinity(0, sizeof cores, &cores) != 0)
    _exit(127);
}

// Runs `main` as the caller would have run it.
int run(Call call) {
  for (int stream = 0; stream < 3; ++stream) {
    dup2(call.streams[stream], stream);
    close(call.streams[stream]);
  }
  if (chdir(call.parts[1].c_str()) != 0) _exit(127);
  const size_t count = std::stoul(call.parts[2]);
  static std::vector<std::string> strings;  // as long as the process
  static std::vector<char*> arguments;
  strings = std::move(call.parts);
  clearenv();
  for (size_t i = 3 + count; i < strings.size(); ++i)
    if (!is_own(strings[i])) putenv(strings[i].data());
  for (size_t i = 3; i < 3 + count; ++i) arguments.push_back(strings[i].data());
  arguments.push_back(nullptr);
  return program_main(static_cast<int>(count), arguments.data(), environ);
}

// Waits for the child, and kills it if the caller ends before.
Ended ended(pid_t child, int caller) {
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  pollfd either[2] = {{handle, POLLIN, 0}, {caller, 0, 0}};
  poll(either, 2, -1);
  if (either[0].revents == 0) kill(child, SIGKILL);
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  return {status, used.ru_maxrss};
}

// In a process of its own for each caller. Returns in the child that is to end as the program does.
int answer(int caller) {
  Call call;
  if (!receive(caller, call)) _exit(1);
  const Reply reply = call.parts[0] == inherited(environ) ? kTaken : kRefused;
  if (send(caller, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply || reply == kRefused)
    _exit(0);
  const pid_t child = fork();
  if (child < 0) _exit(1);
  if (child == 0) {
    take_cores(caller);
    close(caller);
    return run(std::move(call));
  }
  for (const int stream : call.streams) close(stream);
  const auto end = ended(child, caller);
  _exit(send(caller, &end, sizeof end, MSG_NOSIGNAL) == sizeof end ? 0 : 1);
}

// Ends within a second of the process that started it.
int serve(int, char**, char**) {
  const int listener = std::atoi(getenv(kSocket));
  unsetenv("LD_PRELOAD");
  for (const pid_t parent = getppid(); getppid() == parent;) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
    pollfd waiting{listener, POLLIN, 0};
    if (poll(&waiting, 1, 1000) <= 0) continue;
    const int caller = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (caller < 0) _exit(1);
    if (fork() == 0) {
      close(listener);
      return answer(caller);
    }
    close(caller);
  }
  _exit(0);
}

}  // namespace
}  // namespace translution::prestart

// The C library's start of a program: constructors, `main`, `exit`.
extern "C" __attribute__((visibility("default"))) int __libc_start_main(
    translution::prestart::Main program, int count, char** arguments, void (*init)(),
    void (*fini)(), void (*loader_fini)(), void* stack) {
  using namespace translution::prestart;
  const auto start =
      reinterpret_cast<decltype(&__libc_start_main)>(dlsym(RTLD_NEXT, "__libc_start_main"));
  program_main = program;
  return start(getenv(kSocket) != nullptr ? &serve : program, count, arguments, init, fini,
               loader_fini, stack);
}
