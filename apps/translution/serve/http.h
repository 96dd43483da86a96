#pragma once

#include <map>
#include <stdexcept>
#include <string>

namespace translution::serve {

/// A request, as far as handlers read it. All of it comes from strangers.
struct Request {
  std::string method, path;
  std::map<std::string, std::string> parameters;  ///< of the query, "run=0&known=64"
  std::string host, origin;                       ///< headers; empty if missing
  std::string body;
};

struct Response {
  int status = 200;
  std::string type = "application/json", body;
};

/// Thrown for a request that is refused. The message is one line for the client.
class Refusal : public std::runtime_error {
 public:
  Refusal(int status, const std::string& message) : std::runtime_error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// The statuses in use.
inline constexpr int kBadRequest = 400, kForbidden = 403, kNotFound = 404, kWrongMethod = 405,
                     kConflict = 409, kTooLarge = 413, kFailed = 500, kBusy = 503, kTooLate = 504;

/// A refusal as a response: {"error": message}.
Response refused(int status, const std::string& message);

}  // namespace translution::serve
