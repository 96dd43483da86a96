// Runs the program, at TRANSLUTION_PROGRAM, in a process that has loaded its libraries already
// (prestart.h); without one, starts it.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/prestart.h"

using namespace translution::prestart;

namespace {

int connected() {
  const char* name = getenv(kName);
  if (name == nullptr || getenv("LD_PRELOAD") != nullptr) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path + 1, name, sizeof address.sun_path - 2);  // abstract: no file
  const auto size = static_cast<socklen_t>(sizeof address.sun_family + 1 + std::strlen(name));
  const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return connect(server, reinterpret_cast<sockaddr*>(&address), size) == 0 ? server : -1;
}

std::string request(int count, char** arguments) {
  std::string text = inherited(environ) + '\0';
  char directory[4096];
  text += getcwd(directory, sizeof directory) != nullptr ? directory : "";
  text += '\0' + std::to_string(count) + '\0';
  for (int i = 0; i < count; ++i) text += arguments[i] + std::string(1, '\0');
  for (char** entry = environ; *entry != nullptr; ++entry) text += *entry + std::string(1, '\0');
  return text;
}

bool send_call(int server, const std::string& text) {
  const int streams[3] = {0, 1, 2};
  for (const int stream : streams)
    if (fcntl(stream, F_GETFD) < 0) return false;  // closed
  uint32_t size = static_cast<uint32_t>(text.size());
  iovec data{&size, sizeof size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof streams)] = {};
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof streams);
  std::memcpy(CMSG_DATA(header), streams, sizeof streams);
  return sendmsg(server, &message, MSG_NOSIGNAL) == sizeof size &&
         send(server, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

[[noreturn]] void end_as(const Ended& end) {
  if (const char* path = getenv(kPeak)) {
    if (FILE* file = std::fopen(path, "w")) {
      std::fprintf(file, "%ld", static_cast<long>(end.peak_kib));
      std::fclose(file);
    }
  }
  if (WIFSIGNALED(end.status)) {
    const rlimit none{0, 0};  // no second core file
    setrlimit(RLIMIT_CORE, &none);
    raise(WTERMSIG(end.status));
  }
  _exit(WEXITSTATUS(end.status));
}

}  // namespace

int main(int count, char** arguments) {
  const int server = connected();
  Reply reply = kRefused;
  if (server >= 0 && send_call(server, request(count, arguments)) &&
      recv(server, &reply, sizeof reply, MSG_WAITALL) == sizeof reply && reply == kTaken) {
    Ended end{};
    if (recv(server, &end, sizeof end, MSG_WAITALL) == sizeof end) end_as(end);
    std::fputs("prestarted: the process in front of main ended\n", stderr);
    return 127;
  }
  execv(TRANSLUTION_PROGRAM, arguments);
  std::perror(TRANSLUTION_PROGRAM);
  return 127;
}
