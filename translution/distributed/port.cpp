#include "translution/distributed/port.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <thread>

namespace translution {

namespace {

constexpr std::chrono::milliseconds kRetry{20};

// A socket that is closed at the end.
class Socket {
 public:
  explicit Socket(int family) : id(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (id >= 0) close(id);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  const int id;
};

bool connects(const addrinfo& address) {
  const Socket socket(address.ai_family);
  const timeval most{1, 0};  // a host that does not answer
  setsockopt(socket.id, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  return connect(socket.id, address.ai_addr, address.ai_addrlen) == 0;
}

bool connects(const std::string& host, int port) {
  addrinfo hints{}, *addresses = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses) != 0)
    return false;
  bool connected = false;
  for (auto* one = addresses; one != nullptr && !connected; one = one->ai_next)
    connected = connects(*one);
  freeaddrinfo(addresses);
  return connected;
}

}  // namespace

bool port_is_free(int port) {
  const Socket socket(AF_INET);
  const int reuse = 1;  // also right after an earlier server
  setsockopt(socket.id, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<uint16_t>(port));
  return bind(socket.id, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 &&
         listen(socket.id, 1) == 0;
}

bool port_answers(const std::string& address, int port, Seconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!connects(address, port)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kRetry);
  }
  return true;
}

}  // namespace translution
