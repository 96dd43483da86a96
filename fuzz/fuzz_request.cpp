// Requests to the page: any bytes get a file of the page, or JSON with one of the known statuses.
// The lines of the input are method, path, name and value of a parameter, host and origin; the rest
// is the body.

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "apps/translution/serve/handlers.h"
#include "tests/serve/fake_models.h"

namespace {

using namespace translution::serve;

std::string take_line(std::string& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  const auto line = rest.substr(0, end);
  rest.erase(0, std::min(end + 1, rest.size()));
  return line;
}

Request request_of(std::string text) {
  Request request;
  request.method = take_line(text);
  request.path = take_line(text);
  const auto name = take_line(text);
  request.parameters[name] = take_line(text);
  request.host = take_line(text);
  request.origin = take_line(text);
  request.body = std::move(text);
  return request;
}

bool is_known(int status) {
  constexpr int kKnown[] = {200,          kBadRequest, kForbidden, kNotFound,
                            kWrongMethod, kConflict,   kTooLarge,  kBusy};
  return std::find(std::begin(kKnown), std::end(kKnown), status) != std::end(kKnown);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FakeModels models;
  const auto request = request_of({reinterpret_cast<const char*>(data), size});
  const auto response = respond(request, {"localhost"}, models);
  if (!is_known(response.status) || response.body.empty()) std::abort();
  if (response.type != "application/json") return 0;
  const auto answer = nlohmann::json::parse(response.body);
  if (answer.contains("error") != (response.status != 200)) std::abort();
  return 0;
}
