#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "http.h"

namespace translution::serve {

/// HTTP on a socket. Every connection carries one request, has a deadline, and may send a bounded
/// number of bytes; connections beyond a limit get 503.
class HttpServer {
 public:
  /// Listens. Port 0: any free one. Throws std::runtime_error if the address cannot be used.
  HttpServer(const std::string& host, int port, std::function<Response(const Request&)> respond);
  ~HttpServer();

  int port() const;
  /// Answers requests until `stop` is set; returns within a second. `stopping` is called before it
  /// waits for the requests that are being answered.
  void run(const std::atomic<bool>& stop, const std::function<void()>& stopping);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace translution::serve
