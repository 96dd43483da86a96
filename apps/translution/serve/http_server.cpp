#include "http_server.h"

// Debian's library is built with these; they change the layout of its classes.
#define CPPHTTPLIB_OPENSSL_SUPPORT
#define CPPHTTPLIB_ZLIB_SUPPORT
#define CPPHTTPLIB_BROTLI_SUPPORT
#include <httplib.h>
#include <poll.h>

#include <chrono>
#include <thread>
#include <type_traits>

#include "handlers.h"
#include "translution/core/error.h"

namespace translution::serve {

using namespace detail;

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kThreads = 128;       // mostly waiting: for a slow client, or for the worker
constexpr int kMostConnections = 512;  // in all; the others wait in a queue
constexpr int kBacklog = 512;          // of the system
constexpr std::chrono::seconds kToRead{5}, kToAnswer{30}, kToDrain{1};
constexpr std::chrono::milliseconds kTick{100};   // until a stop is noticed
constexpr size_t kMostRead = kMostBytes + 65536;  // of a connection, with headers

// For connections beyond the limit.
std::string busy_response() {
  const auto busy = refused(kBusy, "busy: too many connections; try again later");
  return join("HTTP/1.1 503 Service Unavailable\r\nContent-Type: ", busy.type,
              "\r\nConnection: close\r\nContent-Length: ", busy.body.size(), "\r\n\r\n", busy.body);
}

/// A connection with a deadline for reading the request and one for the answer.
class Connection : public httplib::Stream {
 public:
  Connection(int socket, const std::atomic<bool>& stopping)
      : socket_(socket), stopping_(stopping), started_(Clock::now()) {}
  ~Connection() override {
    ::shutdown(socket_, SHUT_WR);
    drain();
    ::close(socket_);
  }

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }

  ssize_t read(char* to, size_t size) override {
    if (next_ == end_ && !fill()) return -1;
    const size_t count = std::min(size, end_ - next_);
    std::copy_n(buffer_ + next_, count, to);
    next_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* from, size_t size) override {
    if (!wait(POLLOUT, started_ + kToAnswer)) return -1;
    return ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool wait(short event, Clock::time_point deadline) const {
    while (!stopping_ && Clock::now() < deadline) {
      pollfd polled{socket_, event, 0};
      if (::poll(&polled, 1, static_cast<int>(kTick.count())) > 0) return true;
    }
    return false;
  }

  bool fill() {
    if (received_ >= kMostRead || !wait(POLLIN, started_ + kToRead)) return false;
    const ssize_t count = ::recv(socket_, buffer_, sizeof(buffer_), MSG_DONTWAIT);
    if (count <= 0) return false;
    received_ += static_cast<size_t>(count);
    next_ = 0, end_ = static_cast<size_t>(count);
    return true;
  }

  // Bytes that were not read would reset the connection before the client has the answer.
  void drain() {
    const auto deadline = Clock::now() + kToDrain;
    for (size_t drained = 0; drained < kMostRead && wait(POLLIN, deadline);) {
      const ssize_t count = ::recv(socket_, buffer_, sizeof(buffer_), MSG_DONTWAIT);
      if (count <= 0) return;
      drained += static_cast<size_t>(count);
    }
  }

  const int socket_;
  const std::atomic<bool>& stopping_;
  const Clock::time_point started_;
  char buffer_[4096];
  size_t next_ = 0, end_ = 0, received_ = 0;
};

// Nothing in version 0.11, a bool in 0.18.
using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue(nullptr));

// Set while the thread that accepts connections refuses one.
thread_local bool refuses = false;

// A pool of threads that takes no more than so many connections.
class BoundedPool : public httplib::TaskQueue {
 public:
  BoundedPool() : pool_(kThreads) {}

  Enqueued enqueue(std::function<void()> serve) override {
    if (open_ >= kMostConnections) {
      refuses = true;
      serve();
      refuses = false;
      return Enqueued(true);
    }
    ++open_;
    pool_.enqueue([this, serve = std::move(serve)] {
      serve();
      --open_;
    });
    return Enqueued(true);
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  std::atomic<int> open_{0};
  httplib::ThreadPool pool_;
};

Request convert(const httplib::Request& from) {
  Request request{from.method, from.path, {}, {}, {}, from.body};
  for (const auto& [name, value] : from.params) request.parameters.emplace(name, value);
  request.host = from.get_header_value("Host");
  request.origin = from.get_header_value("Origin");
  return request;
}

void convert(const Response& from, httplib::Response& to) {
  to.status = from.status;
  to.headers.clear();
  for (const auto& [name, value] : common_headers()) to.set_header(name, value);
  to.set_content(from.body, from.type);
}

// What is refused before the body is read: what the library would unpack or take apart.
bool is_plain(const httplib::Request& request) {
  return !request.has_header("Content-Encoding") && !request.is_multipart_form_data();
}

}  // namespace

class HttpServer::Impl : public httplib::Server {
 public:
  Impl(const std::string& host, int port, std::function<Response(const Request&)> respond) {
    set_payload_max_length(kMostBytes);
    new_task_queue = [] { return new BoundedPool; };
    set_socket_options([](socket_t socket) {
      const int yes = 1;  // a port that was left a moment ago, but never one that is in use
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
      // A thousand ranges would make a long answer of a short one. The library's request is not
      // const.
      const_cast<httplib::Request&>(request).ranges.clear();
      if (is_plain(request)) return HandlerResponse::Unhandled;
      convert(refused(kBadRequest, "expected a plain body, not encoded and no form"), response);
      return HandlerResponse::Handled;
    });
    const auto handle = [respond = std::move(respond)](const httplib::Request& request,
                                                       httplib::Response& response) {
      convert(respond(convert(request)), response);
    };
    Get(".*", handle);
    Post(".*", handle);
    // What the library refuses by itself: other methods, bad requests, large bodies.
    set_error_handler(Handler([](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      convert(refused(response.status, "expected GET, or POST with a body of at most 8 MB"),
              response);
    }));
    port_ = port == 0 ? bind_to_any_port(host) : (bind_to_port(host, port) ? port : -1);
    ensure(port_ > 0, "cannot listen on ", host, ", port ", port,
           ": it is in use or not an address of this machine; choose another --port or --host");
    ::listen(svr_sock_, kBacklog);
  }

  int port() const { return port_; }

  void run(const std::atomic<bool>& stop_requested, const std::function<void()>& stopping) {
    std::atomic<bool> ended{false};
    std::thread acceptor([&] {
      listen_after_bind();
      ended = true;
    });
    while (!stop_requested && !ended) std::this_thread::sleep_for(kTick / 2);
    const bool failed = ended;
    stopping_ = true;
    stopping();
    while (!is_running() && !ended) std::this_thread::yield();  // stopped before it listened
    stop();
    acceptor.join();
    ensure(!failed, "the server's socket failed");
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    if (refuses) {
      const auto busy = busy_response();
      ::send(socket, busy.data(), busy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ::shutdown(socket, SHUT_WR);
      return ::close(socket) == 0;
    }
    Connection connection(socket, stopping_);
    return process(connection, &Impl::process_request);
  }

  // Version 0.18 also takes the addresses of both sides, which nothing here reads.
  template <typename Member>
  bool process(Connection& connection, Member member) {
    bool closed = false;
    if constexpr (std::is_invocable_v<Member, Impl&, Connection&, bool, bool&, std::nullptr_t>)
      return (this->*member)(connection, /*close_connection=*/true, closed, nullptr);
    else
      return (this->*member)(connection, "", 0, "", 0, /*close_connection=*/true, closed, nullptr);
  }

  int port_ = -1;
  std::atomic<bool> stopping_{false};
};

HttpServer::HttpServer(const std::string& host, int port,
                       std::function<Response(const Request&)> respond)
    : impl_(std::make_unique<Impl>(host, port, std::move(respond))) {}
HttpServer::~HttpServer() = default;

int HttpServer::port() const { return impl_->port(); }
void HttpServer::run(const std::atomic<bool>& stop, const std::function<void()>& stopping) {
  impl_->run(stop, stopping);
}

}  // namespace translution::serve
