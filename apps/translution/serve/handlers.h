#pragma once

#include <string>
#include <utility>
#include <vector>

#include "http.h"
#include "models.h"

namespace translution::serve {

/// Bytes of a request's body.
inline constexpr size_t kMostBytes = size_t{8} << 20, kMostJsonBytes = size_t{2} << 20;

/// Who may ask. DNS rebinding needs a name, so addresses, localhost and the server's own name are
/// the hosts that a request may have; a page of another origin may not ask at all.
struct Site {
  std::string host;  ///< the name that --host gave
};

/// Answers a request. Never throws: whatever is wrong with the request becomes a response with a
/// message.
Response respond(const Request& request, const Site& site, Models& models);

/// Headers of every response.
const std::vector<std::pair<std::string, std::string>>& common_headers();

}  // namespace translution::serve
